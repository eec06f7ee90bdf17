//! The rules of names once more, naively: lists and loops, nothing remembered that can be found by looking again. Shares
//! nothing with the core but plain values. Knows no queue and no budget: it is told which query starts.
//!
//! - [`receipt`]: what people decided;
//! - [`hearing`]: what evidence says;
//! - [`voice`] and [`lane`]: a lane's voices, and what each is;
//! - [`owner`]: which voice is the owner, when several sound like them;
//! - [`telling`]: what the client is told;
//! - [`queries`]: what an answer does;
//! - [`reconnect`]: the owner who reconnects;
//! - [`memory`]: what outlives a lane;
//! - [`carry`]: what a rollover brings;
//! - [`keepsake`]: what a device keeps of its owner.

pub(crate) mod carry;
pub(crate) mod hearing;
pub(crate) mod keepsake;
pub(crate) mod lane;
pub(crate) mod memory;
mod owner;
mod queries;
pub(crate) mod receipt;
mod reconnect;
mod telling;
pub(crate) mod voice;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use self::carry::Carry;
use self::lane::Lane;
use self::memory::Memory;
use self::receipt::Receipt;
use self::voice::Device;
use super::mistake::Mistake;
use super::tally::{Rule, Tally};
use super::words::{CONVERSATIONS, Face, Name, Person, Sound, Told};

/// The mistake that is planted, and the rules that were applied.
pub(crate) struct Rules {
    mistake: Option<Mistake>,
    tally: RefCell<Tally>,
}

impl Rules {
    pub(crate) fn new(mistake: Option<Mistake>) -> Rc<Self> {
        Rc::new(Self { mistake, tally: RefCell::new(Tally::new()) })
    }

    pub(crate) fn errs(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    pub(crate) const fn is_wrong(&self) -> bool {
        self.mistake.is_some()
    }

    pub(crate) fn saw(&self, rule: Rule) {
        self.tally.borrow_mut().saw(rule);
    }

    pub(crate) fn tally(&self) -> Tally {
        self.tally.borrow().clone()
    }
}

/// What another conversation answers of itself.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Word {
    Unavailable,
    Deleted,
    Read(Receipt),
}

/// A query that runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Query {
    pub(crate) lane: u64,
    pub(crate) generation: u64,
    pub(crate) voice: Name,
    pub(crate) half_seconds: u64,
}

/// An answer: what was heard, and whether what people decided could be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer {
    pub(crate) sound: Sound,
    pub(crate) is_authorised: bool,
    pub(crate) now: u64,
}

/// A message of one segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message {
    pub(crate) generation: u64,
    pub(crate) current: &'static str,
    pub(crate) voice: Name,
    pub(crate) segment: &'static str,
    pub(crate) now: u64,
}

#[derive(Default)]
pub(crate) struct Conversation {
    known: Rc<Receipt>,
    pub(crate) lanes: BTreeMap<u64, Lane>,
    queries: BTreeMap<u64, Query>,
}

/// See the module's text. Conversations are numbered; so are queries, each conversation by itself.
pub(crate) struct Model {
    pub(crate) conversations: Vec<Conversation>,
    pub(crate) rules: Rc<Rules>,
}

impl Model {
    pub(crate) fn new(rules: &Rc<Rules>) -> Self {
        let conversations = (0..CONVERSATIONS).map(|_| Conversation::default()).collect();
        Self { conversations, rules: rules.clone() }
    }

    pub(crate) fn lane(&self, at: usize, id: u64) -> Option<&Lane> {
        self.conversations[at].lanes.get(&id)
    }

    fn lane_mut(&mut self, at: usize, id: u64) -> Option<&mut Lane> {
        self.conversations[at].lanes.get_mut(&id)
    }

    pub(crate) fn faces(&self, at: usize, id: u64) -> Vec<Face> {
        self.lane(at, id).map(Lane::faces).unwrap_or_default()
    }

    pub(crate) fn joined(&mut self, at: usize, id: u64, generation: u64, people: &'static [Person]) -> &mut Lane {
        let known = self.conversations[at].known.clone();
        let lane = Lane::new(id, generation, people, known, self.rules.clone());
        self.conversations[at].lanes.entry(id).insert_entry(lane).into_mut()
    }

    pub(crate) fn left(&mut self, at: usize, id: u64) -> Memory {
        self.conversations[at].lanes.remove(&id).map(Lane::leave).unwrap_or_default()
    }

    pub(crate) fn heard(&mut self, at: usize, id: u64, message: Message) -> Vec<Told> {
        self.lane_mut(at, id).map(|lane| lane.heard(message)).unwrap_or_default()
    }

    pub(crate) fn started(&mut self, at: usize, request: u64, query: Query) {
        self.conversations[at].queries.insert(request, query);
    }

    pub(crate) fn ended(&mut self, at: usize, request: u64) {
        self.conversations[at].queries.remove(&request);
    }

    /// An answer counts when its lane is still here, and of the same generation.
    pub(crate) fn answered(&mut self, at: usize, request: u64, answer: Answer) -> Vec<Told> {
        let Some(query) = self.conversations[at].queries.remove(&request) else { return Vec::new() };
        let is_fenced = !self.rules.errs(Mistake::StaleAnswerCounts);
        let rules = self.rules.clone();
        match self.lane_mut(at, query.lane) {
            Some(lane) if lane.generation == query.generation || !is_fenced => lane.answered(&query, answer),
            _ => {
                rules.saw(Rule::StaleAnswer);
                Vec::new()
            }
        }
    }

    /// An older receipt than the known one changes nothing.
    pub(crate) fn decided(&mut self, at: usize, receipt: Receipt) -> Vec<Told> {
        let conversation = &mut self.conversations[at];
        if receipt.generation <= conversation.known.generation {
            if receipt.generation < conversation.known.generation {
                self.rules.saw(Rule::OlderReceipt);
            }
            if receipt.generation == conversation.known.generation || !self.rules.errs(Mistake::OlderReceiptHolds) {
                return Vec::new();
            }
        }
        conversation.known = Rc::new(receipt);
        let known = conversation.known.clone();
        conversation.lanes.values_mut().flat_map(|lane| lane.decided(known.clone())).collect()
    }

    pub(crate) fn enrolled(&mut self, at: usize, id: u64, people: &'static [Person]) -> Vec<Told> {
        self.lane_mut(at, id).map(|lane| lane.enrolled(people)).unwrap_or_default()
    }

    pub(crate) fn answers_of(&mut self, at: usize, id: u64, (of, word): (usize, Word)) -> Vec<Told> {
        self.lane_mut(at, id).map(|lane| lane.word(of, word)).unwrap_or_default()
    }

    /// What is told, and the attempts that go on.
    pub(crate) fn carried(&mut self, at: usize, id: u64, carry: Carry) -> (Vec<Told>, Vec<(u32, u32)>) {
        self.lane_mut(at, id).map(|lane| lane.carried(carry)).unwrap_or_default()
    }

    pub(crate) fn resumed(&mut self, at: usize, id: u64, (memory, device): (Memory, Device)) {
        let lane = self.lane_mut(at, id).expect("a lane joins before it remembers");
        lane.device = device;
        lane.recall(memory);
    }
}
