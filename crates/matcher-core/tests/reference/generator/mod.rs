//! From a seed to a sequence of moves. Every sequence has a mood: a few sounds, voices and kinds of moves that it prefers, so
//! that the same voices meet again and again; and now and then a plot.

mod plots;
mod random;

use matcher_core::receipt::Reach;

use self::random::Random;
use super::moves::{About, Asked, Kept, Move, Reserved, Said, Says, Which};
use super::words::{CONVERSATIONS, GALLERIES, Name, OWNER, OWNER_ANEW, SCOPES, SEGMENTS, SOUNDS, SPEAKERS, Sound};

/// The least and the most moves of a sequence, but for a plot that begins at its end.
const MOVES: std::ops::Range<usize> = 12..36;

#[derive(Debug, Clone, Copy)]
enum Kind {
    Hear,
    Offer,
    OfferLate,
    Turn,
    Dispatch,
    Reserve,
    Answer,
    Unread,
    Fail,
    Correct,
    Deliver,
    People,
    RollOver,
    Bring,
    Leave,
    Resume,
    Clear,
    Word,
    Delete,
    Provider,
    Pass,
}

/// How often each kind comes, when the mood allows it.
const WEIGHTS: [(Kind, usize); 21] = [
    (Kind::Hear, 30),
    (Kind::Offer, 6),
    (Kind::OfferLate, 1),
    (Kind::Turn, 5),
    (Kind::Dispatch, 2),
    (Kind::Reserve, 3),
    (Kind::Answer, 8),
    (Kind::Unread, 2),
    (Kind::Fail, 1),
    (Kind::Correct, 6),
    (Kind::Deliver, 2),
    (Kind::People, 4),
    (Kind::RollOver, 5),
    (Kind::Bring, 8),
    (Kind::Leave, 2),
    (Kind::Resume, 4),
    (Kind::Clear, 1),
    (Kind::Word, 3),
    (Kind::Delete, 1),
    (Kind::Provider, 3),
    (Kind::Pass, 3),
];

struct Mood {
    random: Random,
    lanes: usize,
    speakers: usize,
    scopes: usize,
    sounds: Vec<Sound>,
    people: Vec<usize>,
    kinds: Vec<Kind>,
    /// Of so many moves one begins a plot.
    plots: usize,
}

/// The moves of a seed.
pub(crate) fn moves(seed: u64) -> Vec<Move> {
    let mut mood = Mood::of(Random(seed));
    let count = MOVES.start + mood.random.below(MOVES.len());
    let mut moves = Vec::new();
    while moves.len() < count {
        if mood.random.one_in(mood.plots) {
            mood.plot(&mut moves);
        } else {
            moves.push(mood.next());
        }
    }
    moves
}

impl Mood {
    fn of(mut random: Random) -> Self {
        let mut kinds = Vec::new();
        for (kind, weight) in WEIGHTS {
            let is_everywhere = matches!(kind, Kind::Hear | Kind::Bring);
            let share = if is_everywhere { 2 } else { random.of(&[0, 1, 2, 4]) };
            kinds.extend(std::iter::repeat_n(kind, weight * share));
        }
        let sounds = (0..2 + random.below(3)).map(|_| random.of(&SOUNDS)).chain([OWNER]).collect();
        let people = (0..2).map(|_| random.below(GALLERIES.len())).chain([0]).collect();
        let (lanes, speakers, scopes) = (1 + random.below(4) / 3, 2 + random.below(3), random.of(&[1, 2, 2, 3]));
        let plots = random.of(&[4, 8, 8, 100]);
        Self { random, lanes, speakers, scopes, sounds, people, kinds, plots }
    }

    fn next(&mut self) -> Move {
        let lane = self.random.below(self.lanes);
        match self.random.of(&self.kinds.clone()) {
            Kind::Hear => Move::Hear(self.said(lane), self.sound()),
            Kind::Offer => Move::Offer(self.said(lane)),
            Kind::OfferLate => Move::OfferLate(self.said(lane)),
            Kind::Turn => Move::Turn { lane },
            Kind::Dispatch => Move::Dispatch { lane },
            Kind::Reserve => Move::Reserve { dispatch: self.which(), answer: self.reserved() },
            Kind::Answer => Move::Answer { query: self.which(), sound: self.sound() },
            Kind::Unread => Move::Unread { query: self.which(), sound: self.sound() },
            Kind::Fail => Move::Fail { query: self.which() },
            Kind::Correct => self.correct(),
            Kind::Deliver => Move::Deliver { conversation: self.conversation(), back: self.random.below(4) },
            Kind::People => Move::People { lane, people: self.random.of(&self.people.clone()) },
            Kind::RollOver => Move::RollOver { lane, to: self.random.below(CONVERSATIONS) },
            Kind::Bring => Move::Bring { moving: self.which(), answer: self.answer() },
            Kind::Leave => Move::Leave { lane, to: self.random.below(CONVERSATIONS), device: self.kept() },
            Kind::Resume => Move::Resume { lane, device: self.kept() },
            Kind::Clear => Move::Clear { lane, device: self.kept() },
            Kind::Word => Move::Word { lane, of: self.conversation(), answer: self.answer() },
            Kind::Delete => Move::Delete { conversation: self.conversation() },
            Kind::Provider => Move::Provider { lane, scope: self.scope() },
            Kind::Pass => Move::Pass { seconds: self.random.of(&[1, 3, 6, 31, 125]) },
        }
    }

    fn scope(&mut self) -> &'static str {
        SCOPES[self.random.below(self.scopes)]
    }

    fn speaker(&mut self) -> u32 {
        SPEAKERS[self.random.below(self.speakers)]
    }

    fn voice(&mut self) -> Name {
        (self.speaker(), self.scope())
    }

    fn sound(&mut self) -> Sound {
        self.random.of(&self.sounds.clone())
    }

    /// The first conversations are the ones where most happens.
    fn conversation(&mut self) -> usize {
        let bound = 1 + self.random.below(CONVERSATIONS);
        self.random.below(bound)
    }

    fn answer(&mut self) -> Asked {
        self.random.of(&[Asked::IsSilent, Asked::AnsweredBefore, Asked::Answers, Asked::Answers, Asked::Answers])
    }

    fn which(&mut self) -> Which {
        Which::Number(self.random.below(16))
    }

    fn reserved(&mut self) -> Reserved {
        self.random.of(&[Reserved::Yes, Reserved::Yes, Reserved::No, Reserved::Lost])
    }

    fn said(&mut self, lane: usize) -> Said {
        let scope = (self.scopes > 1 && self.random.one_in(4)).then(|| self.scope());
        let half_seconds = self.random.of(&[1, 3, 4, 5, 6, 10, 10, 11, 24]);
        Said { lane, speaker: self.speaker(), scope, segment: self.random.of(&SEGMENTS), half_seconds }
    }

    /// Sometimes two things are decided at one moment.
    fn correct(&mut self) -> Move {
        let voice = self.voice();
        let mut edits = vec![(voice, self.about(), self.says())];
        if self.random.one_in(4) {
            let other = if self.random.one_in(4) { self.voice() } else { voice };
            edits.push((other, self.about(), self.says()));
        }
        Move::Correct { conversation: self.conversation(), edits, is_told: !self.random.one_in(4) }
    }

    fn about(&mut self) -> About {
        match self.random.below(5) {
            0 => About::Segment(self.random.of(&SEGMENTS), Reach::Voice),
            1 => About::Segment(self.random.of(&SEGMENTS), Reach::SegmentOnly),
            _ => About::Voice,
        }
    }

    fn says(&mut self) -> Says {
        let all = [Says::Owner, Says::Sarah, Says::Sarah, Says::Nina, Says::Nobody, Says::NotMe, Says::NotSarah];
        if self.random.one_in(12) { Says::NotAPerson } else { self.random.of(&all) }
    }

    fn kept(&mut self) -> Kept {
        match self.random.below(6) {
            0 => Kept::NoDevice,
            1 => Kept::Nothing,
            _ => {
                let print = if self.random.one_in(8) { OWNER_ANEW } else { OWNER };
                let sound = if self.random.one_in(3) { self.sound() } else { OWNER };
                let (of, voice) = (self.conversation(), self.voice());
                let (is_outdated, seconds) = (self.random.one_in(8), self.random.of(&[2, 30, 120]));
                Kept::Owner { of, voice, sound, print, is_outdated, seconds }
            }
        }
    }
}
