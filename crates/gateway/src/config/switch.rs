//! A setting that is on or off, and off whenever its text leaves a doubt.
//!
//! It does not know what it switches.

use std::fmt;

use serde::de::{Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// On only when it is written as `true`, in any case and with blanks around it, or as the literal `true`. Everything
/// else is off, as in the system we start from: what shows people's names must not come on by a slip of the pen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Switch {
    /// Off.
    #[default]
    Off,
    /// On.
    On,
}

impl Switch {
    /// Whether it is on.
    #[must_use]
    pub const fn is_on(self) -> bool {
        matches!(self, Self::On)
    }

    fn of(on: bool) -> Self {
        if on { Self::On } else { Self::Off }
    }
}

impl Serialize for Switch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(self.is_on())
    }
}

impl<'de> Deserialize<'de> for Switch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Written)
    }
}

/// Reads a switch as a source spells it. A number is a spelling too: `1` is off.
struct Written;

impl Visitor<'_> for Written {
    type Value = Switch;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("true or false")
    }

    fn visit_bool<E>(self, on: bool) -> Result<Switch, E> {
        Ok(Switch::of(on))
    }

    fn visit_str<E>(self, text: &str) -> Result<Switch, E> {
        Ok(Switch::of(text.trim().to_lowercase() == "true"))
    }

    fn visit_i64<E>(self, _number: i64) -> Result<Switch, E> {
        Ok(Switch::Off)
    }

    fn visit_f64<E>(self, _number: f64) -> Result<Switch, E> {
        Ok(Switch::Off)
    }
}
