//! Which ids and names people can have. Ids stand in paths, files and RTTM fields, so they hold nothing that any of
//! those gives a meaning; names are for reading.

/// Bytes of an id or a name.
const BYTES_MAX: usize = 256;

/// Characters that mean something in a path or a URL.
const RESERVED: &str = "/\\?#%";

/// What is wrong with an id or a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {trouble}")]
pub struct BadName {
    /// `id` or `name`.
    pub field: &'static str,
    trouble: String,
}

/// Checks a person's id: 1 to 256 bytes of letters, digits and ASCII punctuation other than `/ \ ? # %`.
///
/// # Errors
/// Says what is wrong with it.
pub fn check_id(id: &str) -> Result<(), BadName> {
    let wrong = |trouble: String| Err(BadName { field: "id", trouble });
    if id.is_empty() || id.len() > BYTES_MAX {
        return wrong(format!("has {} bytes; it must have 1 to {BYTES_MAX}", id.len()));
    }
    if id == "." || id == ".." {
        return wrong(format!("cannot be {id:?}, which means a folder"));
    }
    match id.chars().find(|c| !is_id_character(*c)) {
        Some(c) => wrong(format!("holds {c:?}; use letters, digits and punctuation other than / \\ ? # %")),
        None => Ok(()),
    }
}

fn is_id_character(c: char) -> bool {
    c.is_alphanumeric() || (c.is_ascii_graphic() && !RESERVED.contains(c))
}

/// Checks a person's name: 1 to 256 bytes of text on one line.
///
/// # Errors
/// Says what is wrong with it.
pub fn check_name(name: &str) -> Result<(), BadName> {
    let wrong = |trouble: String| Err(BadName { field: "name", trouble });
    if name.trim().is_empty() || name.len() > BYTES_MAX {
        return wrong(format!("must have 1 to {BYTES_MAX} bytes that are not all blank"));
    }
    if name.chars().any(char::is_control) {
        return wrong("holds a control character; use one line of plain text".to_owned());
    }
    Ok(())
}

/// An id as one segment of a path: whatever is not plain ASCII goes byte by byte.
#[must_use]
pub fn path_segment(id: &str) -> String {
    id.bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_people_in_every_script_are_taken() {
        for id in ["anna", "a", "Ånna_2", "安娜", "anna@example.org", "user:1", "a.b-c+d", &"x".repeat(256)] {
            assert_eq!(check_id(id), Ok(()), "{id:?}");
        }
    }

    #[test]
    fn ids_that_mean_something_elsewhere_are_refused() {
        let long = "x".repeat(257);
        for id in ["", ".", "..", "../x", "a/b", "a\\b", "a b", "a\n", "a\0", "a%2F", "a?b", "a#b", "\u{202e}a", &long]
        {
            assert!(check_id(id).is_err(), "{id:?}");
        }
    }

    #[test]
    fn a_name_is_one_line_of_text() {
        assert_eq!(check_name("Anna Meier-Ōta, Dr."), Ok(()));
        for name in ["", "  ", "a\nb", "a\u{1b}[31m", &"x".repeat(257)] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
    }
}
