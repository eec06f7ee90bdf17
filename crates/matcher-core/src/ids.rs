//! Names of things, each its own type. None of them ever becomes a metric label.

use std::fmt;
use std::sync::Arc;

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The id, taken verbatim.
            #[must_use]
            pub fn new(text: &str) -> Self {
                Self(text.into())
            }

            /// The id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

/// One provider stream of one recording. Speaker numbers of two scopes have nothing to do with each other, also when two
/// devices call their streams the same; an empty name means unscoped.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope {
    recording: Arc<str>,
    name: Arc<str>,
}

impl Scope {
    /// The stream of a recording that needs no name, because there is only one.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self::of("", name)
    }

    /// A stream of a recording, both taken verbatim.
    #[must_use]
    pub fn of(recording: &str, name: &str) -> Self {
        Self { recording: recording.into(), name: name.into() }
    }

    /// The stream's name, as its client knows it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// The recording.
    #[must_use]
    pub fn recording(&self) -> &str {
        &self.recording
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

text_id!(
    /// The client's id of one transcript segment.
    SegmentId
);
text_id!(
    /// An enrolled person.
    PersonId
);

macro_rules! number_id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number_id!(
    /// A provider's anonymous speaker number.
    Speaker(u32)
);
number_id!(
    /// The audio and the budget of one recording's socket.
    LaneId(u64)
);
number_id!(
    /// Rises at every clear or rollover of a lane and never repeats.
    Generation(u64)
);
number_id!(
    /// One dispatched slot, unique within its scheduler.
    RequestId(u64)
);
