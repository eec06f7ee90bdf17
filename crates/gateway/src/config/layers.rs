//! Laying one source of settings over another, so that each error belongs to the source that caused it.
//!
//! It knows how a field is written in each source, and no field by its meaning.

use std::path::Path;

use serde::Deserialize as _;
use toml::{Table, Value};

use super::{Config, ConfigError};

/// Environment variables that set a field start with this and part section and field by two underscores.
const ENVIRONMENT_PREFIX: &str = "ROLLCALL_";

/// `ROLLCALL_BUDGET__VOICE_ATTEMPTS` is `budget.voice_attempts`. Of the names without the double underscore one is a
/// field, for the sake of those who set it beside `ROLLCALL_HOME`, which is not.
pub(super) fn field_of_variable(name: &str) -> Option<String> {
    if name == "ROLLCALL_RUNTIME" {
        return Some("extraction.runtime".to_owned());
    }
    let (section, field) = name.strip_prefix(ENVIRONMENT_PREFIX)?.split_once("__")?;
    Some(format!("{}.{}", section.to_ascii_lowercase(), field.to_ascii_lowercase()))
}

/// The sources so far: the raw table, and the configuration that it makes.
#[derive(Default)]
pub(super) struct Layers {
    table: Table,
    /// What the sources so far make.
    pub(super) config: Config,
}

impl Layers {
    /// The text is read as a configuration of its own first, because only then does an error know its line.
    pub(super) fn add_file(&mut self, path: &Path, text: &str) -> Result<(), ConfigError> {
        let wrong = |error: toml::de::Error| {
            let line = error.span().map_or(1, |span| text.get(..span.start).unwrap_or("").matches('\n').count() + 1);
            ConfigError::new(format!("{} line {line}", path.display()), one_line(error.message()))
        };
        self.config = toml::from_str(text).map_err(wrong)?;
        self.table = toml::from_str(text).map_err(wrong)?;
        Ok(())
    }

    /// One override is laid over and read at once, so that an error belongs to the source that caused it.
    pub(super) fn add_override(&mut self, source: &str, field: &str, text: &str) -> Result<(), ConfigError> {
        let Some((section, name)) = field.split_once('.') else {
            return Err(ConfigError::new(source, "names no section; fields are written section.field"));
        };
        let as_string = Value::String(text.to_owned());
        let read = self.with(section, name, literal(text).unwrap_or_else(|| as_string.clone()));
        // A path or a name may look like a number; where a string is due, a string it is.
        let (table, config) = read
            .or_else(|error| self.with(section, name, as_string).map_err(|_| error))
            .map_err(|error| ConfigError::new(source, format!("cannot be {text:?}: {}", one_line(error.message()))))?;
        self.table = table;
        self.config = config;
        Ok(())
    }

    fn with(&self, section: &str, name: &str, value: Value) -> Result<(Table, Config), toml::de::Error> {
        let mut table = self.table.clone();
        let fields = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
        if let Some(fields) = fields.as_table_mut() {
            fields.insert(name.to_owned(), value);
        }
        let config = Config::deserialize(table.clone())?;
        Ok((table, config))
    }
}

fn literal(text: &str) -> Option<Value> {
    toml::from_str::<Table>(&format!("value = {text}")).ok()?.remove("value")
}

fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}
