//! What people decided is read before anything is published, and what was read is published only while it is the newest.
//! Owns the waits for it; what a word means is the core's.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use matcher_core::{Donor, Embedding, Event, LaneId, RequestId, Scheduler};

use super::Conversation;
use super::query::{Judging, Returned};
use crate::live::corrections::{NotCorrected, Word};
use crate::live::journal::told_in;

/// The longest wait for what people decided: far below the deadline of a query, whose evidence is kept when it passes.
pub(super) const HEARING_MAX: Duration = Duration::from_secs(1);

/// How soon what could not be read when the conversation began is read again, while nobody gets a name by evidence.
const READ_AGAIN: Duration = Duration::from_secs(1);

/// How often a reading of what people decided is made again that a correction overtook. Each time somebody was answered;
/// beyond it, nothing new is published.
pub(super) const HEARINGS: u32 = 4;

impl Conversation {
    /// Reads what people decided, and only then lets the core judge.
    pub(super) fn judge(&mut self, request: RequestId, embedding: Embedding, hearings: u32, ctx: &mut Context<Self>) {
        let Some(lane) = self.returned.get(&request).map(|returned| returned.lane) else { return };
        ctx.spawn(self.hear(self.scheduler.donors(lane)).into_actor(self).map(move |word, this, ctx| {
            let is_old = word.as_ref().is_ok_and(|word| !this.service.corrections.is_current(word));
            if let Some(hearings) = hearings.checked_sub(1).filter(|_| is_old) {
                return this.judge(request, embedding, hearings, ctx);
            }
            let word = word.and_then(|word| this.current(word));
            if let Some(Returned { received, traced, .. }) = this.returned.remove(&request) {
                this.judging = Judging { received, traced };
            }
            let mut told = Vec::new();
            this.step(ctx, |core, now, out| {
                match word {
                    Ok(word) => {
                        word.apply(lane, core, out);
                        core.handle_extracted(request, embedding, now, out);
                    }
                    Err(error) => {
                        tracing::warn!(%error, "what people decided cannot be read; nothing new is published");
                        core.handle_unauthorised(request, embedding, now, out);
                    }
                }
                told = told_in(lane, out);
            });
            this.recorder.judged((request, told), &this.scheduler, this.now());
            std::mem::take(&mut this.judging).traced.judged();
        }));
    }

    /// What people decided here, when it is newer than what is known, and in others. A store that does not answer in time
    /// is one that cannot be read.
    pub(super) fn hear(&self, donors: Vec<Arc<str>>) -> impl Future<Output = Result<Word, NotCorrected>> + use<> {
        let (service, conversation) = (self.service.clone(), self.key.conversation.clone());
        let known = self.scheduler.receipt().generation();
        async move {
            let hearing = service.corrections.hear(&conversation, known, donors);
            tokio::time::timeout(HEARING_MAX, hearing).await.unwrap_or(Err(NotCorrected::Late))
        }
    }

    /// A reading in the step that uses it: what was corrected since makes it worthless.
    pub(super) fn current(&self, word: Word) -> Result<Word, NotCorrected> {
        if self.service.corrections.is_current(&word) { Ok(word) } else { Err(NotCorrected::Overtaken) }
    }

    /// The words that names rest on are heard again from time to time. Without an answer nothing changes.
    pub(super) fn hear_grounds(&mut self, ctx: &mut Context<Self>) {
        while let Some((lane, donors)) = self.scheduler.poll_grounds(self.now()) {
            ctx.spawn(self.hear(donors).into_actor(self).map(move |word, this, ctx| {
                if let Ok(word) = word.and_then(|word| this.current(word)) {
                    this.step(ctx, |core, _, out| {
                        word.apply(lane, core, out);
                    });
                }
            }));
        }
    }

    /// Keeps the owner for the next socket of a lane's device, or forgets them.
    pub(super) fn keep_owners(&mut self) {
        let now = self.now();
        while let Some((lane, keepsake)) = self.scheduler.poll_keepsake(now) {
            if let Some((link, holder)) = self.lanes.get(&lane).and_then(|link| Some((link, link.holder.as_ref()?))) {
                self.service.capsules.keep(holder, keepsake, (&self.key.conversation, &link.recording));
            }
        }
    }

    /// Before the first offer: what people decided about this conversation in earlier sockets.
    pub(super) fn read_receipt(&self, ctx: &mut Context<Self>) {
        let (service, conversation) = (self.service.clone(), self.key.conversation.clone());
        let reading = async move {
            let reading = service.corrections.open(&conversation);
            tokio::time::timeout(HEARING_MAX, reading).await.unwrap_or(Err(NotCorrected::Late))
        };
        ctx.wait(reading.into_actor(self).map(|receipt, this, ctx| match receipt {
            // Nobody has joined yet: there is nothing to publish.
            Ok(receipt) => this.scheduler.handle_receipt(receipt, &mut Vec::new()),
            Err(error) => {
                tracing::warn!(%error, "what people decided cannot be read; until it is, nobody gets a name by evidence");
                this.scheduler.handle_unread();
                this.read_again(ctx);
            }
        }));
    }

    fn read_again(&self, ctx: &mut Context<Self>) {
        let hearing = self.hear(Vec::new());
        let later = async move {
            tokio::time::sleep(READ_AGAIN).await;
            hearing.await
        };
        ctx.spawn(later.into_actor(self).map(|word, this, ctx| match word.and_then(|word| this.current(word)) {
            Ok(word) => this.step(ctx, |core, _, out| drop(word.newer_to(core, out))),
            Err(_) => this.read_again(ctx),
        }));
    }
}

impl Word {
    pub(super) fn newer_to(self, core: &mut Scheduler, out: &mut Vec<Event>) -> Vec<(Arc<str>, Donor)> {
        match self.newer {
            Some(receipt) => core.handle_receipt(receipt, out),
            None => core.handle_confirmed(out),
        }
        self.donors
    }

    /// Tells the core, and answers what others said.
    pub(super) fn apply(self, lane: LaneId, core: &mut Scheduler, out: &mut Vec<Event>) -> BTreeMap<Arc<str>, Donor> {
        let donors = self.newer_to(core, out);
        for (conversation, word) in &donors {
            core.handle_donor(lane, conversation.clone(), word.clone(), out);
        }
        donors.into_iter().collect()
    }
}
