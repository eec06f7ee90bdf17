//! `rollcall people`: who is enrolled, in the store here or on a running server. The same lines either way.

use clap::Subcommand;
use serde_json::Value;

use super::{CliError, Client, Context, print};
use crate::http::people::shown;
use crate::people::{People, check_id};
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
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Everybody, a line each
    List,
    /// One person
    Show {
        /// The person's id
        id: String,
    },
    /// Delete a person, the samples and every trace of them on disk
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
        None => Place::Store(context.open_people(&context.manifest_or_none())?),
    };
    match &args.action {
        Action::List => print(&listed(&place.list()?, args.json)),
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
            Self::Store(people) => {
                Ok(people.snapshot().iter().map(|person| shown(person, &people.model().name)).collect())
            }
        }
    }

    fn show(&self, id: &str) -> Result<Value, CliError> {
        match self {
            Self::Server(client) => client.person(id),
            Self::Store(people) => match people.find(id) {
                Some(person) => Ok(shown(&person, &people.model().name)),
                None => Err(StoreError::NoSuchPerson(id.to_owned()).into()),
            },
        }
    }

    fn delete(&self, id: &str) -> Result<(), CliError> {
        match self {
            Self::Server(client) => client.delete_person(id),
            Self::Store(people) => {
                let runtime = tokio::runtime::Builder::new_current_thread().build();
                let runtime =
                    runtime.map_err(|error| CliError::failed(format!("cannot start the runtime: {error}")))?;
                Ok(runtime.block_on(people.delete(id))?)
            }
        }
    }
}

fn listed(people: &[Value], json: bool) -> String {
    if json {
        return people.iter().map(|person| format!("{person}\n")).collect();
    }
    if people.is_empty() {
        return "nobody is enrolled; see rollcall enroll --help\n".to_owned();
    }
    people.iter().map(line).collect()
}

fn line(person: &Value) -> String {
    let text = |field| person.get(field).and_then(Value::as_str).unwrap_or_default();
    let owner = if person.get("owner").and_then(Value::as_bool) == Some(true) { ", owner" } else { "" };
    let samples = person.get("samples").and_then(Value::as_u64).unwrap_or_default();
    let seconds = person.get("seconds_of_speech").and_then(Value::as_f64).unwrap_or_default();
    let note = person.get("note").and_then(Value::as_str).map(|note| format!("; {note}")).unwrap_or_default();
    format!("{}\t{}{owner}\t{samples} samples, {seconds:.1} s of speech{note}\n", text("id"), text("name"))
}
