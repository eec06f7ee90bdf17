//! Plays moves to the core and to the model: what sockets, the store and the pool do, for both alike; and compares.
//!
//! - [`commands`]: what each move does;
//! - [`moving`]: lanes that go elsewhere;
//! - [`decisions`]: receipts, as a store keeps them;
//! - [`compare`]: what must be the same.

mod commands;
mod compare;
mod decisions;
mod moving;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::time::Duration;

use matcher_core::{
    Dispatch, Embedding, Gallery, Generation, Join, LaneId, Limits, Monotonic, PersonId, Policy, Print, Rate, Receipt,
    RequestId, Role, Scheduler, Scope, Speaker, Suggestions,
};

use self::moving::Moving;
use super::model::{Model, Rules, hearing, receipt};
use super::moves::{Move, Which};
use super::words::{CONVERSATIONS, GALLERIES, HERTZ, LANES, Person, SCOPES, Sound};

/// What differs.
pub(crate) type Difference = String;

/// One recording's socket.
struct Side {
    id: u64,
    conversation: usize,
    generation: u64,
    scope: &'static str,
    has_device: bool,
    people: &'static [Person],
    /// Half seconds of audio so far.
    audio: u64,
    attempts: BTreeMap<Speaker, u32>,
}

/// A query that no answer ended yet. One whose deadline passed can still be answered; that does nothing.
struct Open {
    conversation: usize,
    request: RequestId,
    lane: usize,
}

/// What a store keeps of a conversation.
struct Stored {
    /// The receipt after each edit, by its generation.
    versions: Vec<Receipt>,
    model: receipt::Receipt,
    /// The newest generation that its scheduler was told.
    told: u64,
    is_deleted: bool,
}

pub(crate) struct World {
    seconds: u64,
    real: Vec<Scheduler>,
    model: Model,
    rules: Rc<Rules>,
    store: Vec<Stored>,
    lanes: Vec<Side>,
    /// Conversations, and what their sockets were asked and did not answer yet.
    dispatched: Vec<(usize, Dispatch)>,
    open: Vec<Open>,
    moving: Vec<Moving>,
    /// Conversation, lane, and the conversations whose words it wants to hear again.
    words_due: Vec<(usize, u64, Vec<usize>)>,
}

fn policy() -> Policy {
    Policy {
        threshold: hearing::THRESHOLD,
        margin: hearing::MARGIN,
        near_miss_bound: hearing::NEAR_MISS,
        near_owner_bound: hearing::NEAR_MISS,
        grouping: hearing::GROUPING,
        reconnect: hearing::RECONNECT,
        suggestions: Suggestions::On { bound: hearing::SUGGESTED_BELOW, margin: hearing::SUGGESTED_FROM },
        levels: hearing::LEVELS,
    }
}

fn rate() -> Rate {
    Rate::new(NonZeroU32::new(HERTZ).expect("the rate is not zero"))
}

fn embedding(sound: Sound) -> Embedding {
    Embedding::new(&sound.values()).expect("sounds are voiceprints")
}

fn gallery(people: &[Person]) -> Gallery {
    let print = |person: &Person| Print {
        person: PersonId::new(person.id),
        name: person.name.into(),
        role: if person.is_owner { Role::Owner } else { Role::Person },
        embedding: embedding(person.sound),
        is_pinned: person.is_pinned,
    };
    Gallery::new(people.iter().map(print).collect())
}

impl World {
    /// Both lanes in the first conversation, with everybody enrolled.
    pub(crate) fn new(rules: &Rc<Rules>) -> Self {
        let limits = Limits::default();
        let real = (0..CONVERSATIONS).map(|_| Scheduler::new(limits.clone(), policy())).collect();
        let empty = || Stored {
            versions: vec![Receipt::default()],
            model: receipt::Receipt::default(),
            told: 0,
            is_deleted: false,
        };
        let store = (0..CONVERSATIONS).map(|_| empty()).collect();
        let model = Model::new(rules);
        let mut world = Self {
            seconds: 0,
            real,
            model,
            rules: rules.clone(),
            store,
            lanes: Vec::new(),
            dispatched: Vec::new(),
            open: Vec::new(),
            moving: Vec::new(),
            words_due: Vec::new(),
        };
        (0..LANES as u64).for_each(|id| world.enter(id));
        world
    }

    fn enter(&mut self, id: u64) {
        let people = GALLERIES[0];
        let join = Join::new(Generation(1), rate(), gallery(people));
        self.real[0].handle_joined(LaneId(id), join).expect("the lane is new");
        self.model.joined(0, id, 1, people);
        let (scope, attempts) = (SCOPES[0], BTreeMap::new());
        self.lanes.push(Side {
            id,
            conversation: 0,
            generation: 1,
            scope,
            has_device: false,
            people,
            audio: 0,
            attempts,
        });
    }

    /// The position of what is meant among so many.
    fn position(which: Which, of: usize) -> Option<usize> {
        match which {
            Which::Newest => of.checked_sub(1),
            Which::Number(number) => number.checked_rem(of),
        }
    }

    fn now(&self) -> Monotonic {
        Monotonic::from_origin(Duration::from_secs(self.seconds))
    }

    fn scope(text: &str) -> Scope {
        Scope::new(text)
    }

    /// Plays all moves; the first difference ends it.
    pub(crate) fn play(&mut self, moves: &[Move]) -> Result<(), Difference> {
        for (at, next) in moves.iter().enumerate() {
            self.make(next).and_then(|()| self.compare_voices()).map_err(|what| format!("move {}: {what}", at + 1))?;
        }
        Ok(())
    }
}
