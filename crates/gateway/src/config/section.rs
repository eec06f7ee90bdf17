//! How a section of the configuration is declared: one line a field gives its documentation, type, default, range,
//! check and example, so that none of them can drift from the others.
//!
//! It knows no field of any section.

use std::fmt::{self, Write as _};

use super::switch::Switch;

/// What is wrong with a setting, and how to mend it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {trouble}")]
pub struct ConfigError {
    field: String,
    trouble: String,
}

impl ConfigError {
    pub(crate) fn new(field: impl fmt::Display, trouble: impl fmt::Display) -> Self {
        Self { field: field.to_string(), trouble: trouble.to_string() }
    }

    /// The field, or the source, that is wrong.
    #[must_use]
    pub fn field(&self) -> &str {
        &self.field
    }
}

/// A value that a section can hold.
pub(super) trait Setting {
    /// The number to hold against the range; `None` when there is none to check.
    fn number(&self) -> Option<f64>;
    /// As written in a file; `None` when the field has no default.
    fn literal(&self) -> Option<String>;
}

impl Setting for u32 {
    fn number(&self) -> Option<f64> {
        Some(f64::from(*self))
    }

    fn literal(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Setting for f64 {
    fn number(&self) -> Option<f64> {
        Some(*self)
    }

    fn literal(&self) -> Option<String> {
        Some(format!("{self:?}"))
    }
}

impl Setting for String {
    fn number(&self) -> Option<f64> {
        None
    }

    fn literal(&self) -> Option<String> {
        Some(format!("{self:?}"))
    }
}

impl Setting for Switch {
    fn number(&self) -> Option<f64> {
        None
    }

    fn literal(&self) -> Option<String> {
        Some(self.is_on().to_string())
    }
}

impl<T: Setting> Setting for Option<T> {
    fn number(&self) -> Option<f64> {
        self.as_ref().and_then(Setting::number)
    }

    fn literal(&self) -> Option<String> {
        self.as_ref().and_then(Setting::literal)
    }
}

pub(super) fn check_range(
    section: &str,
    field: &str,
    value: &impl Setting,
    allowed: Option<(f64, f64)>,
) -> Result<(), ConfigError> {
    let (Some(number), Some(allowed)) = (value.number(), allowed) else { return Ok(()) };
    // Written so that NaN, which compares with nothing, is out of every range.
    if number >= allowed.0 && number <= allowed.1 {
        return Ok(());
    }
    Err(ConfigError::new(
        format!("{section}.{field}"),
        format!("is {number}; it must lie between {} and {}", allowed.0, allowed.1),
    ))
}

pub(super) fn write_field(text: &mut String, docs: &[&str], field: &str, literal: Option<String>, unset: &str) {
    text.push('\n');
    for line in docs {
        text.push_str("# ");
        text.push_str(line.trim());
        text.push('\n');
    }
    let written = match literal {
        Some(literal) => writeln!(text, "{field} = {literal}"),
        None => writeln!(text, "#{field} = {unset}"),
    };
    written.expect("writing into a String cannot fail");
}

/// Declares a section: `/// documentation` then `field: Type = default, lowest to highest;` a field, the range left
/// out for text. A field without a default shows `unset` in the example.
macro_rules! section {
    ($(#[doc = $about:literal])+ $name:ident { $(
        $(#[doc = $doc:literal])+
        $field:ident: $type:ty = $default:expr $(, $low:literal to $high:literal)? $(, example $unset:literal)?;
    )+ }) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name { $( $(#[doc = $doc])+ pub $field: $type, )+ }

        impl Default for $name {
            fn default() -> Self {
                Self { $( $field: $default, )+ }
            }
        }

        impl $name {
            pub(super) fn check(&self, section: &str) -> Result<(), $crate::config::section::ConfigError> {
                $( $crate::config::section::check_range(
                    section, stringify!($field), &self.$field,
                    None$(.or(Some((f64::from($low), f64::from($high)))))?,
                )?; )+
                Ok(())
            }

            pub(super) fn write_example(&self, section: &str, text: &mut String) {
                use $crate::config::section::Setting as _;
                text.push_str("\n[");
                text.push_str(section);
                text.push_str("]\n");
                $( $crate::config::section::write_field(
                    text, &[$($doc),+], stringify!($field), self.$field.literal(), concat!($($unset)?),
                ); )+
            }
        }
    };
}

pub(super) use section;
