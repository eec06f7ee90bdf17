//! The words of the socket `rollcall.v1`: client messages checked at the door, server events as JSON.
//!
//! Everything a client sends is validated here, with an error that names the field and the mend. Owns no state: what a
//! valid message does is the socket's business.

mod events;
mod messages;

pub use events::{BudgetLeft, Candidate, DeniedTotals, Event, Limits, Model, TotalBudget, VoiceSummary};
pub use messages::{AudioFormat, Bounds, Message, Refused, Segment, SpeakerName, Start, parse};
