//! Who is where: conversations, sockets, and the lineages whose ledgers outlive their sockets.
//!
//! A lineage is one (account, recording). Starting the same recording again continues it: same lane, same budget. It is
//! kept while its socket or its conversation lives, for [`RETENTION`] afterwards, and until its bucket is full: forgetting it
//! then gives nothing back that time has not.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actix::Addr;
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use matcher_core::{Generation, LaneId, Memory, Monotonic, Speaker};

use super::conversation::Conversation;
use super::ledger::Ledger;
use super::names::Names;
use super::service::Service;
use super::socket::Socket;

/// How long a lineage without a socket is kept at least: a full refill of the default bucket.
const RETENTION: Duration = Duration::from_secs(240);

/// Lineages kept for each socket that the process allows: reconnects and short recordings. Beyond it a new recording is
/// refused until old ones are forgotten.
const LINEAGES_A_SOCKET: usize = 8;

/// A scheduler that is lost this often within [`LOSS_WINDOW`] has a bug that its conversation provokes: its sockets close.
const LOSSES_MAX: usize = 3;
const LOSS_WINDOW: Duration = Duration::from_secs(60);

/// An account's conversation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConversationKey {
    /// The account.
    pub account: String,
    /// The client's id.
    pub conversation: String,
}

impl ConversationKey {
    fn hash64(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

/// An account's recording.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineageKey {
    /// The account.
    pub account: String,
    /// The client's id.
    pub recording: String,
}

/// What of a recording outlives its socket.
#[derive(Debug)]
pub struct Lineage {
    /// The lane, the same for every socket of this recording.
    pub lane: LaneId,
    /// Its budget.
    pub ledger: Arc<Ledger>,
    /// Its labels: a number means the same voice, and the same attempts, for every socket of this recording.
    names: Mutex<Names>,
    /// When it began.
    began: Monotonic,
    /// Who holds it now.
    holder: Mutex<Holder>,
}

#[derive(Debug, Default)]
struct Holder {
    token: String,
    device: Option<String>,
    conversation: Option<ConversationKey>,
    /// What the last socket knew in that conversation, from its end to the next one's start. In memory alone: these are
    /// voiceprints.
    memory: Memory,
    /// Seconds of the recording that its sockets have reached.
    reached: f64,
    socket: Option<(String, Addr<Socket>)>,
    left: Option<Monotonic>,
}

/// A socket wants a recording.
#[derive(Debug)]
pub struct Claim {
    /// Which.
    pub recording: LineageKey,
    /// Who.
    pub socket: (String, Addr<Socket>),
    /// On which device, if it says.
    pub device: Option<String>,
    /// Where it enters.
    pub conversation: ConversationKey,
    /// The token of a former `ready`.
    pub resume: Option<String>,
}

/// What a socket finds when it takes a lineage.
#[derive(Debug)]
pub struct Taken {
    /// The generation from here on.
    pub generation: Generation,
    /// The socket that held it, now fenced.
    pub predecessor: Option<Addr<Socket>>,
    /// The conversation that the lane is still in, if any.
    pub conversation: Option<ConversationKey>,
}

/// Why a socket cannot have a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    /// The token is not its newest, or another device's.
    #[error("is not this recording's newest token on this device; start without it")]
    WrongToken,
    /// The process remembers its most recordings.
    #[error(transparent)]
    Capacity(#[from] Capacity),
}

/// Another socket holds the recording by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fenced;

/// A process-wide limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Capacity {
    /// Sockets.
    #[error("this server holds its most sockets")]
    Sockets,
    /// Conversations.
    #[error("this server holds its most conversations; try again later")]
    Conversations,
    /// Recordings.
    #[error("this server remembers its most recordings; try again in a few minutes")]
    Recordings,
    /// The server is about to stop.
    #[error("this server is draining; connect again")]
    Draining,
}

/// See the module's text.
#[derive(Debug, Default)]
pub struct Registry {
    conversations: DashMap<ConversationKey, Addr<Conversation>>,
    sockets: DashMap<String, Addr<Socket>>,
    lineages: DashMap<LineageKey, Arc<Lineage>>,
    losses: DashMap<ConversationKey, VecDeque<Monotonic>>,
    lanes: AtomicU64,
    draining: AtomicBool,
}

impl Registry {
    /// The conversation, started when it does not run.
    ///
    /// # Errors
    /// When the process holds its most conversations.
    pub fn conversation(&self, service: &Arc<Service>, key: &ConversationKey) -> Result<Addr<Conversation>, Capacity> {
        // Read before the entry is locked: counting inside would lock the same shard twice.
        let is_full = self.conversations.len() >= service.settings.conversations_max;
        match self.conversations.entry(key.clone()) {
            Entry::Occupied(held) if held.get().connected() => Ok(held.get().clone()),
            Entry::Occupied(mut held) => {
                let fresh = start(service, key);
                held.insert(fresh.clone());
                Ok(fresh)
            }
            Entry::Vacant(_) if is_full => Err(Capacity::Conversations),
            Entry::Vacant(free) => Ok(free.insert(start(service, key)).clone()),
        }
    }

    /// The conversation, if it runs.
    #[must_use]
    pub fn find(&self, key: &ConversationKey) -> Option<Addr<Conversation>> {
        self.conversations.get(key).map(|held| held.clone())
    }

    /// All conversations of an account that run, in order.
    #[must_use]
    pub fn conversations_of(&self, account: &str) -> Vec<String> {
        let mut ids: Vec<String> = self
            .conversations
            .iter()
            .filter(|held| held.key().account == account)
            .map(|held| held.key().conversation.clone())
            .collect();
        ids.sort();
        ids
    }

    /// A conversation was deleted: no recording that comes back knows anything of it.
    pub fn forget_voices_of(&self, conversation: &ConversationKey) {
        for lineage in &self.lineages {
            let mut holder = lineage.lock();
            if holder.conversation.as_ref() == Some(conversation) {
                holder.memory = Memory::default();
            }
        }
    }

    /// A conversation ended: it is forgotten, unless another one already has its place.
    pub(super) fn conversation_ended(&self, key: &ConversationKey, address: &Addr<Conversation>) {
        self.conversations.remove_if(key, |_, held| held == address);
        self.losses.remove(key);
    }

    /// A conversation's actor is being lost, so its address still has its place here. Says whether its sockets may try a
    /// new one.
    pub(super) fn conversation_lost(&self, key: &ConversationKey, now: Monotonic) -> bool {
        self.conversations.remove(key);
        // Of conversations that nobody came back to, too.
        self.losses.retain(|_, losses| losses.back().is_some_and(|newest| now.since(*newest) <= LOSS_WINDOW));
        let mut losses = self.losses.entry(key.clone()).or_default();
        while losses.front().is_some_and(|oldest| now.since(*oldest) > LOSS_WINDOW) {
            losses.pop_front();
        }
        losses.push_back(now);
        losses.len() <= LOSSES_MAX
    }

    /// Admits a socket.
    ///
    /// # Errors
    /// When the process holds its most, or drains.
    pub fn admit(&self, id: &str, socket: Addr<Socket>, sockets_max: usize) -> Result<(), Capacity> {
        self.sockets.insert(id.to_owned(), socket);
        // Checked with the socket inside, so that a drain that begins meanwhile either sees it or is seen.
        let refused = if self.is_draining() {
            Capacity::Draining
        } else if self.sockets.len() > sockets_max {
            Capacity::Sockets
        } else {
            return Ok(());
        };
        self.sockets.remove(id);
        Err(refused)
    }

    /// A socket is gone.
    pub fn socket_left(&self, id: &str) {
        self.sockets.remove(id);
    }

    /// All open sockets.
    #[must_use]
    pub fn sockets(&self) -> Vec<Addr<Socket>> {
        self.sockets.iter().map(|held| held.clone()).collect()
    }

    /// How many sockets are open.
    #[must_use]
    pub fn socket_count(&self) -> usize {
        self.sockets.len()
    }

    /// From here on no socket is admitted.
    pub fn begin_draining(&self) {
        self.draining.store(true, Ordering::SeqCst);
    }

    /// Whether the process is about to stop.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// Whether the books of any lane failed to balance.
    #[must_use]
    pub fn has_broken_books(&self) -> bool {
        self.lineages.iter().any(|held| held.ledger.is_broken())
    }

    /// Takes a recording, new or continued, for a socket that enters `conversation`: a predecessor is fenced by the
    /// generation.
    ///
    /// # Errors
    /// When the token is not the recording's, or the process remembers its most recordings.
    pub fn take(&self, service: &Service, claim: Claim) -> Result<(Arc<Lineage>, Taken), NotTaken> {
        let Claim { recording, socket, device, conversation, resume } = claim;
        let lineages_max = service.settings.sockets_max.saturating_mul(LINEAGES_A_SOCKET);
        if self.lineages.len() >= lineages_max {
            self.forget_old(service.clock.now());
        }
        // Read before the entry is locked: counting inside would lock the same shard twice.
        let is_full = self.lineages.len() >= lineages_max;
        let lineage = match self.lineages.entry(recording) {
            Entry::Occupied(held) => held.into_ref(),
            Entry::Vacant(_) if resume.is_some() => return Err(NotTaken::WrongToken),
            Entry::Vacant(_) if is_full => return Err(Capacity::Recordings.into()),
            Entry::Vacant(free) => free.insert(Arc::new(self.fresh_lineage(service))),
        };
        if resume.is_some_and(|token| !lineage.accepts(&token, device.as_deref())) {
            return Err(NotTaken::WrongToken);
        }
        // Still under the entry's lock: nobody forgets the lineage before it has its holder.
        let taken = lineage.take((socket, device), &conversation, service.ids.next("resume-"));
        Ok((lineage.clone(), taken))
    }

    fn fresh_lineage(&self, service: &Service) -> Lineage {
        let instruments = (service.telemetry.accounts().clone(), service.telemetry.metrics().clone());
        let ledger = Ledger::new(service.settings.budget, Generation(0), service.clock, instruments);
        let lane = LaneId(self.lanes.fetch_add(1, Ordering::Relaxed));
        Lineage {
            lane,
            ledger: Arc::new(ledger),
            names: Mutex::default(),
            began: service.clock.now(),
            holder: Mutex::default(),
        }
    }

    /// Lets go of what is over: what a recording knew of its voices, when its conversation is and nobody came back, and the
    /// recording itself, when forgetting it refills nothing.
    pub fn sweep(&self, now: Monotonic) {
        self.lineages.retain(|_, lineage| {
            let mut holder = lineage.lock();
            let has_rested = holder.left.is_some_and(|left| now.since(left) >= RETENTION);
            let is_over = has_rested && holder.conversation.as_ref().is_none_or(|key| self.find(key).is_none());
            if is_over {
                holder.memory = Memory::default();
            }
            !(is_over && lineage.ledger.is_full())
        });
    }

    /// Drops every lineage that is over, and every one without a socket that never asked for anything.
    fn forget_old(&self, now: Monotonic) {
        self.lineages.retain(|_, lineage| {
            let holder = lineage.lock();
            let Some(left) = holder.left else { return true };
            let has_rested = now.since(left) >= RETENTION && lineage.ledger.is_full();
            let lives = holder.conversation.as_ref().is_some_and(|key| self.find(key).is_some());
            !(lineage.ledger.is_untouched() || has_rested && !lives)
        });
    }
}

impl Lineage {
    /// The labels of this recording.
    pub fn names(&self) -> std::sync::MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accepts(&self, token: &str, device: Option<&str>) -> bool {
        let holder = self.lock();
        !holder.token.is_empty() && holder.token == token && holder.device.as_deref() == device
    }

    fn take(
        &self,
        (socket, device): ((String, Addr<Socket>), Option<String>),
        conversation: &ConversationKey,
        token: String,
    ) -> Taken {
        let mut holder = self.lock();
        holder.device = device;
        let left = holder.conversation.replace(conversation.clone());
        let generation = match &left {
            Some(before) if before != conversation => {
                holder.memory = Memory::default();
                self.ledger.roll_over()
            }
            Some(_) | None => self.ledger.resume(),
        };
        let predecessor = holder.socket.replace(socket).map(|(_, address)| address);
        holder.token = token;
        holder.left = None;
        Taken { generation, predecessor, conversation: left }
    }

    /// The lane enters its next conversation, at the word of the socket that holds it. Answers the new generation, and the
    /// attempts of the one before.
    ///
    /// # Errors
    /// When another socket holds it.
    pub fn roll_over(
        &self,
        socket: &str,
        conversation: &ConversationKey,
    ) -> Result<(Generation, BTreeMap<Speaker, u32>), Fenced> {
        let mut holder = self.held_by(socket)?;
        holder.conversation = Some(conversation.clone());
        holder.memory = Memory::default();
        let attempts = self.ledger.attempts();
        Ok((self.ledger.roll_over(), attempts))
    }

    /// Segments came up to here, in seconds of the recording.
    pub(super) fn reach(&self, seconds: f64) {
        let mut holder = self.lock();
        holder.reached = holder.reached.max(seconds);
    }

    /// Where the audio of a socket that starts now lies in the recording, in seconds: at its beginning for the first one;
    /// else after the time that has passed, and after everything that was sent, should that have been faster.
    pub(super) fn offset(&self, now: Monotonic) -> f64 {
        let reached = self.lock().reached;
        if reached > 0.0 { now.since(self.began).as_secs_f64().max(reached) } else { 0.0 }
    }

    /// Voices that a rollover carried keep what they had spent, and no label gets a number that people decided about; at
    /// the word of a socket that still holds the lane.
    pub(super) fn settle_in(&self, generation: Generation, attempts: Vec<(Speaker, u32)>, decided: Vec<Speaker>) {
        let _holder = self.lock();
        if self.ledger.generation() == generation {
            self.ledger.carry(attempts);
            self.names().reserve(decided);
        }
    }

    /// What a socket that is gone knew in a conversation, for the next socket there.
    pub(super) fn remember(&self, conversation: &ConversationKey, memory: Memory) {
        let mut holder = self.lock();
        if holder.conversation.as_ref() == Some(conversation) {
            holder.memory = memory;
        }
    }

    /// What the recording's former socket knew in this conversation; it is given once.
    pub(super) fn recall(&self, conversation: &ConversationKey) -> Memory {
        let mut holder = self.lock();
        let memory = std::mem::take(&mut holder.memory);
        if holder.conversation.as_ref() == Some(conversation) { memory } else { Memory::default() }
    }

    /// The lane's scheduler was lost; it goes on in the same conversation.
    ///
    /// # Errors
    /// When another socket holds it.
    pub fn resume(&self, socket: &str) -> Result<Generation, Fenced> {
        let _holder = self.held_by(socket)?;
        Ok(self.ledger.resume())
    }

    fn held_by(&self, socket: &str) -> Result<std::sync::MutexGuard<'_, Holder>, Fenced> {
        let holder = self.lock();
        let holds = holder.socket.as_ref().is_some_and(|(id, _)| id == socket);
        if holds { Ok(holder) } else { Err(Fenced) }
    }

    /// The token that continues this recording.
    #[must_use]
    pub fn token(&self) -> String {
        self.lock().token.clone()
    }

    /// A socket is gone; says whether it still held the recording.
    pub fn leave(&self, socket: &str, now: Monotonic) -> bool {
        let mut holder = self.lock();
        let held = holder.socket.as_ref().is_some_and(|(id, _)| id == socket);
        if held {
            holder.socket = None;
            holder.left = Some(now);
        }
        held
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Holder> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn start(service: &Arc<Service>, key: &ConversationKey) -> Addr<Conversation> {
    service.arbiters.start(key.hash64(), Conversation::new(service.clone(), key.clone()))
}
