//! Performing what the core decided: accounts to telemetry, events to sockets, settlements of late queries; and the
//! gauges that follow from the state after a step.

use actix::prelude::*;
use matcher_core::budget::Outcome;
use matcher_core::{Ending, Event, ExitReason, Gallery, LaneId, Speaker};
use tokio::sync::watch;

use super::{Conversation, Exits, tell_free};
use crate::live::labels;
use crate::live::socket::{Overwhelmed, Publish};

impl Conversation {
    pub(super) fn perform(&mut self, events: Vec<Event>, ctx: &mut Context<Self>) {
        for event in events {
            self.account(&event);
            self.judging.traced.note(&event);
            match event {
                Event::Overdue { request } => self.give_up(request, Outcome::DeadlinePassed, ctx),
                Event::Released { lane, speaker } => self.release(lane, speaker),
                Event::Exited { lane, .. }
                | Event::Failed { lane, .. }
                | Event::Published { lane, .. }
                | Event::Suggested { lane, .. }
                | Event::Retracted { lane, .. } => self.publish(lane, event),
                Event::Decided { .. }
                | Event::RolledOver { .. }
                | Event::Reconnected { .. }
                | Event::Collapsed { .. } => {}
            }
        }
    }

    fn account(&self, event: &Event) {
        let accounts = self.service.telemetry.accounts();
        match event {
            // A denial is booked by its socket, in one step with the incidence and the record.
            Event::Exited { reason: ExitReason::EmbeddingBudget, .. } => {}
            Event::Exited { reason, .. } => accounts.exited(labels::exit(*reason)),
            Event::Decided { target, ending, .. } => {
                accounts.decided(labels::target(*target), labels::decision(*ending));
                if let (Some(received), true) = (self.judging.received, *ending != Ending::Pending) {
                    let (after, trace) = (self.now().since(received), self.judging.traced.context());
                    self.service.telemetry.metrics().verdict(after, trace);
                }
            }
            Event::RolledOver { lane, carried, target, reason, .. } => {
                self.service.telemetry.metrics().rolled_over(labels::carried(*carried), labels::target(*target));
                let recording = self.recording(*lane);
                let (carried, target) = (labels::carried(*carried).as_str(), labels::target(*target).as_str());
                tracing::info!(event = "live_speaker_rollover", recording, carried, target, reason = reason.as_str());
            }
            Event::Reconnected { ending, .. } => {
                self.service.telemetry.metrics().reconnect(labels::reconnect(*ending));
            }
            Event::Collapsed { lane, speaker } => {
                self.service.telemetry.metrics().collapsed();
                let recording = self.recording(*lane);
                tracing::warn!(event = "live_speaker_collapse", recording, speaker = speaker.0);
            }
            Event::Failed { .. }
            | Event::Published { .. }
            | Event::Suggested { .. }
            | Event::Retracted { .. }
            | Event::Released { .. }
            | Event::Overdue { .. } => {}
        }
    }

    fn recording(&self, lane: LaneId) -> &str {
        self.lanes.get(&lane).map_or("", |link| &link.recording)
    }

    fn publish(&self, lane: LaneId, event: Event) {
        let Some(link) = self.lanes.get(&lane) else { return };
        if link.exits == Exits::Counted && matches!(event, Event::Exited { .. }) {
            return;
        }
        if let Err(SendError::Full(_)) = link.socket.try_send(Publish(event)) {
            #[expect(clippy::disallowed_methods, reason = "the socket closes at the first; one a refused event")]
            link.socket.do_send(Overwhelmed);
        }
    }

    /// A number of a former conversation is free: the lane's socket knows where the lane is now.
    fn release(&mut self, lane: LaneId, speaker: Speaker) {
        let here = self.lanes.get(&lane).map(|link| &link.socket);
        if let Some(socket) = here.or_else(|| self.departed.get(&lane).map(|departed| &departed.socket)) {
            tell_free(socket, speaker);
        }
        if let Some(departed) = self.departed.get_mut(&lane) {
            departed.numbers.remove(&speaker);
        }
        self.departed.retain(|_, departed| !departed.numbers.is_empty());
    }

    /// Follows the enrolled people, and judges the evidence again at every change.
    pub(super) fn follow_people(&self, mut people: watch::Receiver<Gallery>, ctx: &mut Context<Self>) {
        let change = async move { people.changed().await.map(|()| people) };
        ctx.spawn(change.into_actor(self).map(|changed, this, ctx| {
            if let Ok(people) = changed {
                this.follow_people(people, ctx);
                this.judge_again(ctx);
            }
        }));
    }

    fn judge_again(&mut self, ctx: &mut Context<Self>) {
        let galleries: Vec<_> =
            self.lanes.iter().map(|(lane, link)| (*lane, self.service.gallery(link.people.as_deref()))).collect();
        self.recorder.changed(self.now());
        self.step(ctx, |core, _, out| {
            for (lane, gallery) in galleries {
                core.handle_gallery(lane, gallery, out);
            }
        });
    }

    /// The gauges, and the speech that voices lost to their range limit.
    pub(super) fn report(&mut self) {
        let now = self.now();
        let mut slots = 0;
        let mut oldest = None;
        for (lane, link) in &mut self.lanes {
            let Some(queue) = self.scheduler.queue(*lane) else { continue };
            slots += queue.len() as u64;
            oldest = queue.waiting().map(|(_, slot, _)| slot.since).chain(oldest).min();
            let evicted = queue.evicted();
            if evicted > link.evicted {
                self.service.telemetry.metrics().range_evicted((evicted - link.evicted) as f64 / link.hertz);
                link.evicted = evicted;
            }
        }
        self.queued.set(slots);
        self.capacity.set((self.lanes.len() * self.service.settings.limits.slots_max.get()) as u64);
        self.oldest.set(oldest.and_then(|since| std::time::Instant::now().checked_sub(now.since(since))));
    }

    /// Answers every lane that waits for its last verdicts and has nothing more to come.
    pub(super) fn finish_drained(&mut self) {
        let finished: Vec<LaneId> =
            self.finishing.keys().copied().filter(|lane| self.scheduler.is_settled(*lane)).collect();
        for lane in finished {
            if let Some(done) = self.finishing.remove(&lane) {
                // A socket that no longer waits has left.
                done.send(()).ok();
            }
        }
    }
}
