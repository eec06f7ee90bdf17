//! A recording's table of voices: labels become numbers, numbers stay as they are, and one recording uses one kind.
//!
//! A label means a voice only within its provider stream, so the same label of another stream is another number. A number
//! that a correction speaks of is never given to a new label: it would inherit what was said of somebody else.

use std::collections::{BTreeMap, BTreeSet};

use matcher_core::{Scope, Speaker};

use super::protocol::SpeakerName;

/// The reference assistant's own questions carry this number; it is never given to a label.
const ASSISTANT: Speaker = Speaker(99);

/// Labels a socket may use over its life, in all scopes together: eight full conversations. Beyond it a new label is
/// refused, and the known ones go on.
const LABELS_MAX: usize = 1024;

/// Why a name is no voice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    /// The socket began with labels.
    #[error("this socket began with labels; send labels only")]
    LabelsInUse,
    /// The socket began with numbers.
    #[error("this socket began with numbers; send numbers only")]
    NumbersInUse,
    /// Too many labels.
    #[error("this socket has used 1024 different labels, which is the most")]
    TooMany,
    /// No such voice.
    #[error("no segment of this voice was sent yet")]
    Unknown,
}

/// See the module's text.
#[derive(Debug, Default)]
pub struct Names {
    kind: Option<Kind>,
    numbers: BTreeMap<(Scope, String), Speaker>,
    labels: BTreeMap<Speaker, String>,
    /// Numbers that the conversation's corrections speak of. Bounded as they are.
    reserved: BTreeSet<Speaker>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Numbers,
    Labels,
}

impl Names {
    /// The number of a voice, allocated when its label is new in its scope.
    ///
    /// # Errors
    /// When the socket uses the other kind, or too many labels.
    pub fn number(&mut self, name: &SpeakerName, scope: &Scope) -> Result<Speaker, BadName> {
        match name {
            SpeakerName::Number(number) => {
                self.settle_kind(Kind::Numbers)?;
                Ok(Speaker(*number))
            }
            SpeakerName::Label(label) => {
                self.settle_kind(Kind::Labels)?;
                self.allocate(label, scope)
            }
        }
    }

    /// The number of a voice that is known already.
    ///
    /// # Errors
    /// When no segment of it came yet.
    pub fn known(&self, name: &SpeakerName) -> Result<Speaker, BadName> {
        match name {
            SpeakerName::Number(number) => Ok(Speaker(*number)),
            SpeakerName::Label(label) => {
                let folded = fold(label);
                let newest = self.numbers.iter().filter(|((_, known), _)| *known == folded).map(|(_, number)| *number);
                newest.max().ok_or(BadName::Unknown)
            }
        }
    }

    /// The label that the client used, if it uses labels.
    #[must_use]
    pub fn label(&self, speaker: Speaker) -> Option<&str> {
        self.labels.get(&speaker).map(String::as_str)
    }

    /// The numbers that the conversation's corrections speak of, in place of those of the last call. No label gets one of
    /// them anew; a label that has one keeps it.
    pub fn reserve(&mut self, numbers: impl IntoIterator<Item = Speaker>) {
        self.reserved = numbers.into_iter().collect();
    }

    fn settle_kind(&mut self, kind: Kind) -> Result<(), BadName> {
        match (*self.kind.get_or_insert(kind), kind) {
            (Kind::Labels, Kind::Numbers) => Err(BadName::LabelsInUse),
            (Kind::Numbers, Kind::Labels) => Err(BadName::NumbersInUse),
            (Kind::Labels, Kind::Labels) | (Kind::Numbers, Kind::Numbers) => Ok(()),
        }
    }

    fn allocate(&mut self, label: &str, scope: &Scope) -> Result<Speaker, BadName> {
        let key = (scope.clone(), fold(label));
        if let Some(number) = self.numbers.get(&key) {
            return Ok(*number);
        }
        if self.numbers.len() >= LABELS_MAX {
            return Err(BadName::TooMany);
        }
        let number = self.next_number();
        self.labels.insert(number, label.to_owned());
        self.numbers.insert(key, number);
        Ok(number)
    }

    /// The first free number after the newest label's: an older one is never used again.
    fn next_number(&self) -> Speaker {
        let next = self.labels.last_key_value().map_or(0, |(newest, _)| newest.0 + 1);
        let is_free = |number: &Speaker| *number != ASSISTANT && !self.reserved.contains(number);
        (next..).map(Speaker).find(is_free).expect("labels and corrections are far fewer than numbers")
    }
}

/// `SPEAKER_02` and `SPEAKER_2` are one label; any other text is taken verbatim.
fn fold(label: &str) -> String {
    let number = label.strip_prefix("SPEAKER_").filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    match number.and_then(|digits| digits.parse::<u32>().ok()) {
        Some(number) => format!("SPEAKER_{number}"),
        None => label.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    //! Goal: two people never share a number, and one person keeps theirs within a scope.
    //! Method: labels of several scopes by hand.

    use super::*;

    fn label(text: &str) -> SpeakerName {
        SpeakerName::Label(text.to_owned())
    }

    #[test]
    fn a_label_folds_within_its_scope_and_is_another_voice_in_the_next() {
        let mut names = Names::default();
        let (first, second) = (Scope::new("a:0"), Scope::new("b:0"));
        assert_eq!(names.number(&label("SPEAKER_00"), &first), Ok(Speaker(0)));
        assert_eq!(names.number(&label("SPEAKER_0"), &first), Ok(Speaker(0)));
        assert_eq!(names.number(&label("Anna"), &first), Ok(Speaker(1)));
        assert_eq!(names.number(&label("SPEAKER_00"), &second), Ok(Speaker(2)));
        assert_eq!(names.label(Speaker(2)), Some("SPEAKER_00"));
        assert_eq!(names.known(&label("SPEAKER_0")), Ok(Speaker(2)), "the newest scope answers");
    }

    // B10.138
    #[test]
    fn the_same_label_of_two_providers_is_two_numbers_and_of_a_reconnected_one_a_third() {
        let mut names = Names::default();
        let mut of = |scope: &str| names.number(&label("SPEAKER_00"), &Scope::new(scope)).unwrap().0;
        assert_eq!([of("deepgram:0"), of("modulate:0")], [0, 1]);
        assert_eq!([of("deepgram:1"), of("deepgram:0"), of("modulate:0")], [2, 0, 1]);
    }

    // Case 5
    #[test]
    fn labels_that_restart_in_a_new_scope_restart_nothing_here() {
        let mut names = Names::default();
        let (first, second) = (Scope::new("a:0"), Scope::new("b:0"));
        let allocated: Vec<u32> = [&first, &second]
            .iter()
            .flat_map(|scope| ["SPEAKER_00", "SPEAKER_01"].map(|text| names.number(&label(text), scope).unwrap().0))
            .collect();
        assert_eq!(allocated, [0, 1, 2, 3]);
    }

    // B7.101
    #[test]
    fn a_number_that_a_correction_speaks_of_is_never_given_to_a_new_label() {
        let (continuing, fresh) = (Scope::new("a:0"), Scope::new("b:0"));
        let mut names = Names::default();
        assert_eq!(names.number(&label("SPEAKER_00"), &continuing), Ok(Speaker(0)));
        names.reserve([Speaker(0)]);
        assert_eq!(names.number(&label("SPEAKER_00"), &fresh), Ok(Speaker(1)));
        assert_eq!(names.number(&label("SPEAKER_00"), &continuing), Ok(Speaker(0)), "what it had, it keeps");

        let mut names = Names::default();
        names.reserve([0, 2, 98, u32::MAX].map(Speaker));
        assert_eq!(names.number(&label("SPEAKER_00"), &fresh), Ok(Speaker(1)));
        assert_eq!(names.label(Speaker(0)), None, "a reserved number has no label");
        let next: Vec<u32> =
            (0..100).map(|index| names.number(&label(&format!("voice {index}")), &fresh).unwrap().0).collect();
        assert_eq!((next[0], next[94], next[95]), (3, 97, 100));
    }

    #[test]
    fn ninety_nine_is_never_allocated() {
        let mut names = Names::default();
        let scope = Scope::new("a:0");
        let numbers: Vec<u32> =
            (0..150).map(|index| names.number(&label(&format!("voice {index}")), &scope).unwrap().0).collect();
        assert!(!numbers.contains(&99));
        assert_eq!(numbers[99], 100);
    }

    #[test]
    fn one_socket_uses_one_kind_of_name() {
        let mut names = Names::default();
        let scope = Scope::new("a:0");
        assert_eq!(names.number(&SpeakerName::Number(7), &scope), Ok(Speaker(7)));
        assert_eq!(names.number(&label("Anna"), &scope), Err(BadName::NumbersInUse));
    }
}
