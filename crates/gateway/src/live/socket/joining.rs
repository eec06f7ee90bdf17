//! How a socket comes into a conversation: a start, a rollover, and a fresh scheduler after one was lost. Owns the order of
//! the steps (who is told first, what is waited for); what goes along is the core's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use actix::prelude::*;
use matcher_core::{Gallery, Generation, HandOver, JoinRefused, LaneId, Scope, Speaker};
use telemetry::Refusal;

use super::live::{Live, Place};
use super::{Phase, Socket, TakenOver};
use crate::live::continuity::{Holder, Opened};
use crate::live::conversation::{Departure, Exits, Join, Leave, Left, Offers};
use crate::live::protocol::{Refused, Start};
use crate::live::registry::{Capacity, Claim, ConversationKey, Lineage, LineageKey, NotTaken, Taken};
use crate::live::service::Service;

/// A conversation may end between looking it up and joining it; then a fresh one is started. Twice is already unlikely.
const JOIN_TRIES: usize = 5;

impl Socket {
    pub(super) fn start(&mut self, start: Start, ctx: &mut Context<Self>) {
        let key = ConversationKey { account: self.account.clone(), conversation: start.conversation.clone() };
        let (lineage, taken) = match self.take_lineage(&start, &key, ctx) {
            Ok(taken) => taken,
            Err(refused) => return self.refuse(refused),
        };
        let entry = Entry {
            key,
            recording: start.recording.clone(),
            lineage: lineage.clone(),
            people: start.people.clone(),
            exits: if start.verbose { Exits::Told } else { Exits::Counted },
            generation: taken.generation,
            rate: matcher_core::Rate::new(start.audio.sample_rate),
            holder: None,
            offset: 0.0,
        };
        let joining = begin(self.service.clone(), ctx.address(), entry, (start.device.clone(), taken.conversation));
        ctx.wait(joining.into_actor(self).map(move |joined, this, _| match joined {
            Ok(place) => {
                let live = Live::new(this.service.clone(), &this.id, start, lineage, place);
                this.send(&this.ready(&live));
                this.phase = Phase::Live(Box::new(live));
            }
            Err(refused) => {
                lineage.leave(&this.id, this.service.clock.now());
                this.refuse(refused);
            }
        }));
    }

    fn take_lineage(
        &self,
        start: &Start,
        key: &ConversationKey,
        ctx: &Context<Self>,
    ) -> Result<(Arc<Lineage>, Taken), Refused> {
        let claim = Claim {
            recording: LineageKey { account: self.account.clone(), recording: start.recording.clone() },
            socket: (self.id.clone(), ctx.address()),
            device: start.device.clone(),
            conversation: key.clone(),
            resume: start.resume.clone(),
        };
        let taken = self.service.registry.take(&self.service, claim);
        let (lineage, taken) = taken.map_err(|not_taken| match not_taken {
            NotTaken::WrongToken => Refused::field("resume", not_taken.to_string()),
            NotTaken::Capacity(full) => capacity(full),
        })?;
        if let Some(predecessor) = &taken.predecessor {
            #[expect(
                clippy::disallowed_methods,
                reason = "a lost message would leave two sockets on one lane; one a start"
            )]
            predecessor.do_send(TakenOver);
        }
        Ok((lineage, taken))
    }

    pub(super) fn roll_over(&mut self, conversation: String, carry: bool, ctx: &mut Context<Self>) {
        let Phase::Live(live) = &self.phase else { return };
        if conversation == live.key().conversation {
            return self.send(&self.ready(live)); // Nothing changes, and the client hears that.
        }
        let key = ConversationKey { account: self.account.clone(), conversation };
        let from = live.key().clone();
        // The generation moves at once: nothing of the former conversation can reserve from here on.
        let Ok((generation, attempts)) = live.lineage().roll_over(&self.id, &key) else {
            return; // Another socket has taken this recording over, and its word is on the way here.
        };
        let entry = Entry { generation, key, ..Entry::of(live) };
        let baggage = carry.then(|| (live.scope().clone(), attempts));
        let joining = move_over(self.service.clone(), ctx.address(), entry, (from, live.generation(), baggage));
        self.enter_when(joining, |_| {}, ctx);
    }

    /// The conversation's actor was lost: the lane joins a fresh one and offers again what its ring still holds.
    pub(super) fn rejoin(&mut self, ctx: &mut Context<Self>) {
        let Some(live) = self.live() else { return };
        let Ok(generation) = live.lineage().resume(&self.id) else { return };
        let entry = Entry { generation, ..Entry::of(live) };
        let arrival = Arrival { held: Vec::new(), departure: None, opened: Opened::again(entry.holder.clone()) };
        let joining = enter(self.service.clone(), ctx.address(), entry, arrival);
        let received = self.service.clock.now();
        let again = move |live: &mut Live| {
            let offers = Offers { lane: live.lane(), batch: live.recent(), received };
            // A fresh conversation's mailbox is empty; were it full, the next ordinary updates bring the speech back.
            live.conversation().try_send(offers).ok();
        };
        self.enter_when(joining, again, ctx);
    }

    fn enter_when(
        &self,
        joining: impl Future<Output = Result<Place, Refused>> + 'static,
        then: impl FnOnce(&mut Live) + 'static,
        ctx: &mut Context<Self>,
    ) {
        ctx.wait(joining.into_actor(self).map(move |joined, this, ctx| {
            let Some(live) = this.live_mut() else { return };
            match joined {
                Ok(place) => {
                    live.enter(place);
                    then(live);
                    if let Some(live) = this.live() {
                        this.send(&this.ready(live));
                    }
                }
                Err(refused) => {
                    this.refuse(refused);
                    this.close(1013, "no conversation to be had; try again later", ctx);
                }
            }
        }));
    }
}

/// A lane at the door of a conversation.
struct Entry {
    key: ConversationKey,
    recording: String,
    lineage: Arc<Lineage>,
    people: Option<Arc<BTreeSet<String>>>,
    exits: Exits,
    generation: Generation,
    rate: matcher_core::Rate,
    holder: Option<Arc<Holder>>,
    offset: f64,
}

impl Entry {
    fn of(live: &Live) -> Self {
        Self {
            key: live.key().clone(),
            recording: live.recording.clone(),
            lineage: live.lineage().clone(),
            people: live.people.clone(),
            exits: live.exits(),
            generation: live.generation(),
            rate: live.rate(),
            holder: live.holder.clone(),
            offset: live.offset,
        }
    }
}

/// What a lane has with it.
struct Arrival {
    held: Vec<Speaker>,
    departure: Option<Departure>,
    opened: Opened,
}

/// A socket's first entry: it leaves the conversation that a predecessor was in, if any, and opens on its device.
async fn begin(
    service: Arc<Service>,
    socket: Addr<Socket>,
    mut entry: Entry,
    (device, from): (Option<String>, Option<ConversationKey>),
) -> Result<Place, Refused> {
    let before = Generation(entry.generation.0 - 1);
    let held = match from {
        Some(from) => leave(&service, &from, (entry.lineage.lane, before), Left::Gone).await.held,
        None => Vec::new(),
    };
    // By now the predecessor has said how far it came.
    entry.offset = entry.lineage.offset(service.clock.now());
    let token = service.ids.next("device-");
    let opened = service.capsules.open(&entry.key.account, device.as_deref(), token).await;
    enter(service, socket, entry, Arrival { held, departure: None, opened }).await
}

/// What a rollover with `carry` goes by: the stream that goes on, and the attempts spent before.
type Baggage = (Scope, BTreeMap<Speaker, u32>);

/// From one conversation to the next, with `baggage` when what may be carried is to be.
async fn move_over(
    service: Arc<Service>,
    socket: Addr<Socket>,
    entry: Entry,
    (from, before, baggage): (ConversationKey, Generation, Option<Baggage>),
) -> Result<Place, Refused> {
    let HandOver { held, memory } = leave(&service, &from, (entry.lineage.lane, before), Left::RolledOver).await;
    let conversation = from.conversation;
    let departure = baggage.map(|(scope, attempts)| Departure { conversation, scope, memory, attempts });
    let opened = Opened::again(entry.holder.clone());
    enter(service, socket, entry, Arrival { held, departure, opened }).await
}

async fn leave(
    service: &Service,
    from: &ConversationKey,
    (lane, generation): (LaneId, Generation),
    why: Left,
) -> HandOver {
    let Some(conversation) = service.registry.find(from) else { return HandOver::default() };
    conversation.send(Leave { lane, generation, why }).await.unwrap_or_default()
}

async fn enter(service: Arc<Service>, socket: Addr<Socket>, entry: Entry, arrival: Arrival) -> Result<Place, Refused> {
    let Arrival { held, departure, opened } = arrival;
    let holder = opened.holder.clone();
    let mut answer = None;
    for _ in 0..JOIN_TRIES {
        let conversation = service.registry.conversation(&service, &entry.key).map_err(capacity)?;
        let message = Join {
            lane: entry.lineage.lane,
            recording: entry.recording.clone(),
            socket: socket.clone(),
            lineage: entry.lineage.clone(),
            people: entry.people.clone(),
            exits: entry.exits,
            opened: opened.clone(),
            departure: departure.clone(),
            offset: entry.offset,
            join: matcher_core::Join {
                attempts: entry.lineage.ledger.attempts(),
                held: held.clone(),
                ..matcher_core::Join::new(entry.generation, entry.rate, Gallery::default())
            },
        };
        if let Ok(joined) = conversation.send(message).await {
            answer = Some(joined.map(|joined| (conversation, joined)));
            break;
        }
    }
    match answer {
        Some(Ok((conversation, joined))) => {
            // Before anything can be reserved: the socket hears nothing until this is done.
            entry.lineage.settle_in(entry.generation, joined.attempts, joined.decided);
            Ok(Place { key: entry.key, conversation, generation: entry.generation, holder, offset: entry.offset })
        }
        Some(Err(refused @ (JoinRefused::LanesMax | JoinRefused::AlreadyJoined))) => Err(Refused {
            code: "conversation_full",
            reason: Refusal::Capacity,
            ..Refused::field("conversation_id", refused.to_string())
        }),
        None => Err(Refused::whole("busy", Refusal::Capacity, "the conversation could not be joined; start again")),
    }
}

fn capacity(capacity: Capacity) -> Refused {
    let reason = match capacity {
        Capacity::Draining => Refusal::Draining,
        Capacity::Sockets | Capacity::Conversations | Capacity::Recordings => Refusal::Capacity,
    };
    Refused::whole("capacity", reason, capacity.to_string())
}
