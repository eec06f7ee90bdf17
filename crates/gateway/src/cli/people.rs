//! `rollcall people`: who is enrolled, in the store here or on a running server. The same lines either way.

use clap::Subcommand;
use serde_json::Value;

use super::output::complain;
use super::{CliError, Client, Context, print};
use crate::http::people::shown;
use crate::people::{People, PersonRecord, check_id};
use crate::store::StoreError;

/// Arguments of `rollcall people`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: rollcall people list --server http://127.0.0.1:8700")]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
    /// Ask a running server instead of opening --data
    #[arg(long, global = true, value_name = "URL")]
    server: Option<String>,
    /// Print JSON Lines: one object a person, and nothing when there is nobody
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Everybody, a line each
    #[command(after_help = "Example: rollcall people list --json")]
    List,
    /// One person
    #[command(after_help = "Example: rollcall people show anna --server http://127.0.0.1:8700")]
    Show {
        /// The person's id
        id: String,
    },
    /// Delete a person, the samples and every trace of them on disk
    #[command(after_help = "Example: rollcall people delete anna --data ./data")]
    Delete {
        /// The person's id
        id: String,
    },
}

enum Place {
    Store(People),
    Server(Client),
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    context.start_logs("warn")?;
    let place = match &args.server {
        Some(url) => Place::Server(Client::new(url)?),
        None => Place::Store(context.open_people_there(&context.manifest_or_none())?),
    };
    match &args.action {
        Action::List => {
            let people = place.list()?;
            if people.is_empty() && !args.json {
                complain("nobody is enrolled; see rollcall enroll --help");
            }
            print(&listed(&people, args.json))
        }
        Action::Show { id } => print(&listed(&[place.show(checked(id)?)?], args.json)),
        Action::Delete { id } => {
            place.delete(checked(id)?)?;
            print(&format!("{id} is deleted\n"))
        }
    }
}

fn checked(id: &str) -> Result<&str, CliError> {
    check_id(id).map_err(CliError::input)?;
    Ok(id)
}

impl Place {
    fn list(&self) -> Result<Vec<Value>, CliError> {
        match self {
            Self::Server(client) => client.people(),
            Self::Store(people) => Ok(people.snapshot().iter().map(|person| shown_here(people, person)).collect()),
        }
    }

    fn show(&self, id: &str) -> Result<Value, CliError> {
        match self {
            Self::Server(client) => client.person(id),
            Self::Store(people) => match people.find(id) {
                Some(person) => Ok(shown_here(people, &person)),
                None => Err(StoreError::NoSuchPerson(id.to_owned()).into()),
            },
        }
    }

    fn delete(&self, id: &str) -> Result<(), CliError> {
        match self {
            Self::Server(client) => client.delete_person(id),
            Self::Store(people) => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
                let runtime =
                    runtime.map_err(|error| CliError::failed(format!("cannot start the runtime: {error}")))?;
                Ok(runtime.block_on(people.delete(id))?)
            }
        }
    }
}

/// As a server shows a person, which always has a model. Without one nobody knows whether samples are of it, and so
/// neither whether the person is enrolled; that they are there is known.
fn shown_here(people: &People, person: &PersonRecord) -> Value {
    let model = &people.model().name;
    let mut value = shown(person, model);
    if let Some(members) = value.as_object_mut().filter(|_| !people.has_model() && person.other_samples > 0) {
        let note = format!("model {model} is not installed, so these samples cannot be judged; see rollcall doctor");
        members.insert("enrolled".to_owned(), Value::Null);
        members.insert("samples".to_owned(), person.other_samples.into());
        members.insert("seconds_of_speech".to_owned(), person.other_seconds.into());
        members.insert("note".to_owned(), note.into());
    }
    value
}

fn listed(people: &[Value], json: bool) -> String {
    if json {
        return people.iter().map(|person| format!("{person}\n")).collect();
    }
    people.iter().map(line).collect()
}

fn line(person: &Value) -> String {
    let text = |field| person.get(field).and_then(Value::as_str).unwrap_or_default();
    let mark = |field, mark| if person.get(field).and_then(Value::as_bool) == Some(true) { mark } else { "" };
    let (owner, pinned) = (mark("owner", ", owner"), mark("is_pinned", ", pinned"));
    let samples = person.get("samples").and_then(Value::as_u64).unwrap_or_default();
    let seconds = person.get("seconds_of_speech").and_then(Value::as_f64).unwrap_or_default();
    let note = person.get("note").and_then(Value::as_str).map(|note| format!("; {note}")).unwrap_or_default();
    format!("{}\t{}{owner}{pinned}\t{samples} samples, {seconds:.1} s of speech{note}\n", text("id"), text("name"))
}
