//! From a seed to a sequence of moves. Every sequence has a mood: a few sounds, voices and kinds of moves that it prefers, so
//! that the same voices meet again and again.

use matcher_core::receipt::Reach;

use super::moves::{About, Asked, Kept, Move, Reserved, Said, Says};
use super::words::{CONVERSATIONS, GALLERIES, Name, OWNER, OWNER_ANEW, SCOPES, SEGMENTS, SOUNDS, SPEAKERS, Sound};

/// `SplitMix64`: every seed is as good as every other.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("it is below a usize")
    }

    fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// The newest of whatever it is.
const LAST: usize = usize::MAX;

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

    /// A few moves that lead where chance alone seldom gets, with other things happening between them.
    fn plot(&mut self, moves: &mut Vec<Move>) {
        let lane = self.random.below(self.lanes);
        match self.random.below(8) {
            0 => self.plot_a_silence(lane, moves),
            1..5 => self.plot_a_rollover(lane, moves),
            _ => self.plot_a_reconnect(lane, moves),
        }
    }

    /// A voice has its name, people say something of one of its segments, and then the name does not hold any more.
    fn plot_a_silence(&mut self, lane: usize, moves: &mut Vec<Move>) {
        let said = Said { scope: None, half_seconds: 10, ..self.said(lane) };
        moves.push(Move::Hear(said, OWNER));
        let about = About::Segment(self.random.of(&SEGMENTS), Reach::Voice);
        let edits = vec![((said.speaker, self.scope()), about, self.says())];
        moves.push(Move::Correct { conversation: self.conversation(), edits, is_told: true });
        self.between(moves);
        moves.push(match self.random.below(3) {
            0 => Move::People { lane, people: self.random.below(GALLERIES.len()) },
            1 => Move::Hear(Said { speaker: self.speaker(), ..said }, self.sound()),
            _ => {
                let edits = vec![(self.voice(), self.about(), Says::Owner)];
                Move::Correct { conversation: self.conversation(), edits, is_told: true }
            }
        });
    }

    fn between(&mut self, moves: &mut Vec<Move>) {
        for _ in 0..self.random.of(&[0, 0, 1, 1, 2, 3]) {
            moves.push(self.next());
        }
    }

    /// The owner speaks, the conversation rolls over, and its word comes.
    fn plot_a_rollover(&mut self, lane: usize, moves: &mut Vec<Move>) {
        let said = Said { scope: None, half_seconds: 10, ..self.said(lane) };
        if self.random.one_in(2) {
            moves.push(Move::Hear(Said { speaker: self.speaker(), ..said }, self.sound()));
        }
        let sound = if self.random.one_in(3) { self.sound() } else { OWNER };
        moves.push(Move::Hear(said, sound));
        self.between(moves);
        moves.push(Move::RollOver { lane, to: self.random.below(CONVERSATIONS) });
        match self.random.below(8) {
            0 => moves.push(Move::People { lane, people: self.random.below(GALLERIES.len()) }),
            1 => {
                moves.push(Move::Provider { lane, scope: self.scope() });
                moves.push(Move::Offer(self.said(lane)));
            }
            2 => moves.extend([Move::Offer(Said { half_seconds: 10, ..said }), Move::Turn { lane }]),
            _ => self.between(moves),
        }
        moves.push(Move::Bring { moving: LAST, answer: self.answer() });
        if self.random.one_in(4) {
            moves.push(Move::Answer { query: LAST, sound: self.sound() });
        }
    }

    /// A socket comes with a hint, and the owner speaks for a short time.
    fn plot_a_reconnect(&mut self, lane: usize, moves: &mut Vec<Move>) {
        let device = self.kept();
        let of = if let Kept::Owner { of, .. } = device { of } else { 0 };
        moves.push(match self.random.below(3) {
            0 => Move::Resume { lane, device },
            1 => Move::Clear { lane, device },
            _ => Move::Leave { lane, to: self.random.below(CONVERSATIONS), device },
        });
        let said = Said { scope: None, half_seconds: self.random.of(&[4, 5, 6]), ..self.said(lane) };
        if self.random.one_in(3) {
            moves.push(Move::Offer(said));
            moves.push(Move::Turn { lane });
            self.between(moves);
            let unread = self.random.one_in(3);
            let (query, sound) = (LAST, OWNER);
            moves.push(if unread { Move::Unread { query, sound } } else { Move::Answer { query, sound } });
        } else {
            self.between(moves);
            moves.push(Move::Hear(said, OWNER));
        }
        if self.random.one_in(6) {
            moves.push(self.correct());
            moves.push(Move::Word { lane, of, answer: Asked::Answers });
            moves.push(Move::Word { lane, of, answer: Asked::AnsweredBefore });
        }
        if self.random.one_in(3) {
            if self.random.one_in(3) {
                moves.push(Move::RollOver { lane, to: self.random.below(CONVERSATIONS) });
                moves.push(self.correct());
                moves.push(Move::Bring { moving: LAST, answer: Asked::Answers });
            } else {
                self.plot_a_rollover(lane, moves);
            }
        }
    }

    fn next(&mut self) -> Move {
        let lane = self.random.below(self.lanes);
        match self.random.of(&self.kinds.clone()) {
            Kind::Hear => Move::Hear(self.said(lane), self.sound()),
            Kind::Offer => Move::Offer(self.said(lane)),
            Kind::OfferLate => Move::OfferLate(self.said(lane)),
            Kind::Turn => Move::Turn { lane },
            Kind::Dispatch => Move::Dispatch { lane },
            Kind::Reserve => Move::Reserve { dispatch: self.random.below(4), answer: self.reserved() },
            Kind::Answer => Move::Answer { query: self.random.below(16), sound: self.sound() },
            Kind::Unread => Move::Unread { query: self.random.below(16), sound: self.sound() },
            Kind::Fail => Move::Fail { query: self.random.below(16) },
            Kind::Correct => self.correct(),
            Kind::Deliver => Move::Deliver { conversation: self.conversation(), back: self.random.below(4) },
            Kind::People => Move::People { lane, people: self.random.of(&self.people.clone()) },
            Kind::RollOver => Move::RollOver { lane, to: self.random.below(CONVERSATIONS) },
            Kind::Bring => Move::Bring { moving: self.random.below(4), answer: self.answer() },
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
