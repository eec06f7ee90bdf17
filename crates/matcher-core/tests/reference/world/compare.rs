//! What must be the same: everything that is told, every voice, what is kept of the owner, and what queries ask for. And what
//! must never be: a name of another generation, conversation or receipt than the lane's own.

use std::fmt::Write as _;
use std::time::Duration;

use matcher_core::{Dispatch, Event, Keepsake, Kept, LaneId, Monotonic, Origin, RequestId};

use super::decisions::number;
use super::{Difference, Side, World};
use crate::reference::model::keepsake;
use crate::reference::model::receipt::Ruled;
use crate::reference::words::{Face, Told, face, lasting, told};

impl World {
    /// What came out of a step in a conversation: the core's events, and what the model tells.
    pub(super) fn compare(&mut self, at: usize, out: Vec<Event>, mut expected: Vec<Told>) -> Result<(), Difference> {
        let mut found = Vec::new();
        for event in out {
            self.fence(at, &event)?;
            if let Event::Released { lane, speaker } = event {
                self.released(lane, speaker);
            }
            if let Event::Overdue { request } = event {
                self.overdue(at, request)?;
            }
            found.extend(told(&event));
        }
        found.sort_by_key(Told::place);
        expected.sort_by_key(Told::place);
        if found != expected {
            return Err(format!("told differently.\n  core:{}\n  model:{}", lines(&found), lines(&expected)));
        }
        self.compare_keepsakes(at)?;
        self.compare_words_due(at)
    }

    /// Words are asked for again when both say so; [`World::words_due`] remembers it.
    fn compare_words_due(&mut self, at: usize) -> Result<(), Difference> {
        let now = self.now();
        let mut found = Vec::new();
        while let Some((lane, of)) = self.real[at].poll_grounds(now) {
            found.push((lane.0, of.iter().map(|name| number(name)).collect()));
        }
        let mut expected: Vec<(u64, Vec<usize>)> = Vec::new();
        for (id, lane) in &mut self.model.conversations[at].lanes {
            expected.extend(lane.words_due(self.seconds).map(|of| (*id, of)));
        }
        if found != expected {
            return Err(format!("words to be heard again: the core says {found:?}, the model {expected:?}"));
        }
        self.words_due.extend(found.into_iter().map(|(lane, of)| (at, lane, of)));
        Ok(())
    }

    /// Nothing is told of a lane where it is not, or was; and by what people had decided before they decided otherwise.
    fn fence(&self, at: usize, event: &Event) -> Result<(), Difference> {
        let (Event::Published { lane, generation, .. }
        | Event::Retracted { lane, generation, .. }
        | Event::Suggested { lane, generation, .. }) = event
        else {
            return Ok(());
        };
        let side = &self.lanes[self.side(*lane)];
        if (side.conversation, side.generation) != (at, generation.0) {
            return Err(format!("told of conversation {at} and a stale generation: {event:?}"));
        }
        let (known, told) = (self.real[at].receipt().generation(), self.store[at].told);
        if known != told {
            return Err(format!(
                "told by the receipt of generation {known}, after that of {told} was known: {event:?}"
            ));
        }
        Ok(())
    }

    fn overdue(&self, at: usize, request: RequestId) -> Result<(), Difference> {
        if self.is_open(at, request) { Ok(()) } else { Err(format!("{request:?} is overdue, and not open")) }
    }

    pub(super) fn compare_voices(&self) -> Result<(), Difference> {
        for side in &self.lanes {
            let voices = self.real[side.conversation].voices(LaneId(side.id));
            let mut found: Vec<Face> = voices.iter().map(face).collect();
            let mut expected = self.model.faces(side.conversation, side.id);
            // Streams stand in the order in which they came, which is not the model's affair.
            [&mut found, &mut expected].into_iter().for_each(|faces| faces.sort_by(|a, b| a.voice.cmp(&b.voice)));
            self.check_evidence(side, &found)?;
            if found != expected {
                let lane = side.id;
                return Err(format!("voices of lane {lane}.\n  core:{}\n  model:{}", lines(&found), lines(&expected)));
            }
        }
        Ok(())
    }

    /// Evidence names nobody who is not enrolled, and no owner once people said who it is.
    fn check_evidence(&self, side: &Side, faces: &[Face]) -> Result<(), Difference> {
        let is_reserved = self.real[side.conversation].receipt().is_owner_reserved();
        for face in faces {
            let Some(identity) = face.identity.filter(|identity| identity.origin == Origin::Automatic) else {
                continue;
            };
            if side.people.iter().all(|person| person.id != identity.person) {
                return Err(format!("evidence names somebody who is not enrolled: {face:?}"));
            }
            if is_reserved && identity.person == "user" {
                return Err(format!("evidence says owner, and people said who it is: {face:?}"));
            }
        }
        Ok(())
    }

    fn compare_keepsakes(&mut self, at: usize) -> Result<(), Difference> {
        let now = self.now();
        let mut found = Vec::new();
        while let Some((lane, keepsake)) = self.real[at].poll_keepsake(now) {
            found.push((lane.0, keepsake));
        }
        let mut expected = Vec::new();
        for (id, lane) in &mut self.model.conversations[at].lanes {
            while let Some(keepsake) = lane.keepsake(self.seconds) {
                expected.push((*id, keepsake));
            }
        }
        let are_same = |((one, core), (other, model)): (&(u64, Keepsake), &(u64, keepsake::Keepsake))| {
            one == other && is_same_keepsake(core, model)
        };
        if found.len() == expected.len() && found.iter().zip(&expected).all(are_same) {
            return Ok(());
        }
        Err(format!("kept differently.\n  core:{}\n  model:{}", lines(&found), lines(&expected)))
    }

    /// A query asks for a voice that is nobody yet, about which nobody decided, and for as much speech as it needs.
    pub(super) fn compare_dispatch(&self, at: usize, dispatch: &Dispatch) -> Result<(), Difference> {
        let name = (dispatch.speaker.0, lasting(dispatch.scope.as_str()));
        let lane = self.model.lane(at, dispatch.lane.0).ok_or("a query of a lane that is not here")?;
        let voice = lane.find(name).ok_or("a query of a voice that nobody heard")?;
        let state = &lane.voices[voice];
        let (needed, evidence) = (lane.needed(voice), state.half_seconds());
        if (dispatch.needed, dispatch.evidence) != (needed, evidence) {
            let found = (dispatch.needed, dispatch.evidence);
            return Err(format!("{name:?} needs and has: the core says {found:?}, the model {:?}", (needed, evidence)));
        }
        if lane.ruled(name) != Ruled::Free {
            return Err(format!("a query of {name:?}, about whom people decided: {:?}", lane.ruled(name)));
        }
        if let Some(identity) = state.identity() {
            return Err(format!("a query of {name:?}, who is {identity:?}"));
        }
        Ok(())
    }
}

fn is_same_keepsake(core: &Keepsake, model: &keepsake::Keepsake) -> bool {
    match (core, model) {
        (Keepsake::Withdraw, keepsake::Keepsake::Withdraw) => true,
        (Keepsake::Keep(core), keepsake::Keepsake::Keep(model)) => is_same_owner(core, model),
        (Keepsake::Keep(_), keepsake::Keepsake::Withdraw) | (Keepsake::Withdraw, keepsake::Keepsake::Keep(_)) => false,
    }
}

/// The core narrows what it keeps to single precision.
fn is_same_owner(core: &Kept, model: &keepsake::Kept) -> bool {
    let is_near = |(one, other): (&f32, &f64)| (f64::from(*one) - other).abs() < 1e-6;
    (core.voice.speaker.0, core.voice.scope.as_str()) == model.voice
        && core.centroid.values().iter().zip(&model.centroid).all(is_near)
        && core.seconds * 2.0 == model.half_seconds as f64
        && core.observed == Monotonic::from_origin(Duration::from_secs(model.observed))
        && core.receipt_generation == model.receipt
}

fn lines<T: std::fmt::Debug>(items: &[T]) -> String {
    let mut text = String::new();
    for item in items {
        write!(text, "\n    {item:?}").expect("a string takes everything");
    }
    text
}
