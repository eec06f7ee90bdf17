//! Mistakes that can be planted into the model, each a rule that is easily got wrong.

/// One wrong rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// An answer counts although its generation is over.
    StaleAnswerCounts,
    /// Speech counts although its generation is over.
    StaleSpeechCounts,
    /// What people decided is replaced by what they decided before.
    OlderReceiptHolds,
    /// What another conversation said counts after it said something newer.
    OldWordHolds,
    /// A name wins against a rejection of the same moment.
    TiesFavourTheName,
    /// What is said of one segment alone speaks for its voice.
    SegmentAloneSpeaks,
    /// ... and goes along at a rollover.
    SegmentAloneIsCarried,
    /// To be nobody is no decision.
    NobodyIsFree,
    /// The owner is open to evidence although people said who it is.
    ReservationIsIgnored,
    /// ... unless they said it of a whole voice.
    SegmentReservesNothing,
    /// A rejected voice competes for the owner.
    RejectedCompetes,
    /// A voice that is confidently somebody else competes for the owner.
    OthersCompete,
    /// The nearest is the owner, however near the next.
    NoArbitration,
    /// The same person on two streams is two.
    NoGroups,
    /// Two voices of one stream are one.
    GroupsWithinAStream,
    /// The margin must be exceeded.
    MarginIsStrict,
    /// The threshold may be reached.
    ThresholdIsInclusive,
    /// An equal print that comes later is nearer.
    TiesFavourTheLater,
    /// Names on little evidence.
    ShortEvidenceNames,
    /// A reconnect asks nobody.
    WordIsNotAsked,
    /// ... and may be tried again.
    SecondTry,
    /// ... and needs not sound alike.
    AnybodyReconnects,
    /// A rollover carries the owner of another stream.
    CarryIgnoresTheScope,
    /// ... and one that people rejected there.
    CarryIgnoresARejection,
    /// ... and one who is judged by another print.
    CarryIgnoresThePrint,
    /// ... and one who was examined here meanwhile.
    CarryIgnoresEvidenceHere,
    /// ... and whoever else had a name.
    CarryTakesEverybody,
    /// ... and leaves the runner-up behind.
    CarryForgetsCompetitors,
    /// Who only competes gets a name.
    CompetitorsPublish,
    /// All attempts go on.
    AllAttemptsGoOn,
    /// What was carried is told before the voice is heard.
    SilenceIsBroken,
    /// An answer that nobody authorised is published.
    UnreadIsPublished,
    /// A socket that resumes knows nothing.
    ResumeForgets,
    /// Whoever has a voice of their own is suggested for another.
    TakenIsSuggested,
}

impl Mistake {
    pub(crate) const ALL: [Self; 34] = [
        Self::StaleAnswerCounts,
        Self::StaleSpeechCounts,
        Self::OlderReceiptHolds,
        Self::OldWordHolds,
        Self::TiesFavourTheName,
        Self::SegmentAloneSpeaks,
        Self::SegmentAloneIsCarried,
        Self::NobodyIsFree,
        Self::ReservationIsIgnored,
        Self::SegmentReservesNothing,
        Self::RejectedCompetes,
        Self::OthersCompete,
        Self::NoArbitration,
        Self::NoGroups,
        Self::GroupsWithinAStream,
        Self::MarginIsStrict,
        Self::ThresholdIsInclusive,
        Self::TiesFavourTheLater,
        Self::ShortEvidenceNames,
        Self::WordIsNotAsked,
        Self::SecondTry,
        Self::AnybodyReconnects,
        Self::CarryIgnoresTheScope,
        Self::CarryIgnoresARejection,
        Self::CarryIgnoresThePrint,
        Self::CarryIgnoresEvidenceHere,
        Self::CarryTakesEverybody,
        Self::CarryForgetsCompetitors,
        Self::CompetitorsPublish,
        Self::AllAttemptsGoOn,
        Self::SilenceIsBroken,
        Self::UnreadIsPublished,
        Self::ResumeForgets,
        Self::TakenIsSuggested,
    ];
}
