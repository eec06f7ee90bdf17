//! The live path: sockets, conversations and the ledgers between them.
//!
//! ```text
//!  client ─frames─▶ Socket ──Offers──▶ Conversation ──submit──▶ Engine
//!                   ring · LEDGER      matcher_core::Scheduler
//!                     ▲  └──Answered──▶   │        ▲
//!                     └──Reserve · Publish┘        └── Turnstile grants turns
//! ```
//! A [`Socket`] owns one client's audio, labels and the right to reserve; a [`Conversation`] owns the scheduler of one
//! conversation and its open queries. Both translate messages, let the core decide, and perform the answer. What they
//! share stands in [`Service`].

mod clock;
mod continuity;
mod conversation;
pub mod corrections;
mod intake;
mod journal;
pub(crate) mod labels;
mod ledger;
mod names;
mod registry;
mod ring;
mod service;
mod socket;
mod streams;

pub mod protocol;

pub use clock::Clock;
pub use continuity::Capsules;
pub use conversation::{
    Conversation, ConversationSnapshot, Glance, LaneSnapshot, Seen, Snapshot, Tell, VoiceExplained,
};
pub(crate) use conversation::{Correct, ReadAgain, Streams, Whose};
pub use intake::{Encoding, Intake};
pub use journal::{Journal, JournalError};
pub use ledger::{Lease, Ledger, Left, NoLease};
pub use names::Names;
pub use registry::{Capacity, Claim, ConversationKey, Fenced, Lineage, LineageKey, NotTaken, Registry, Taken};
pub use ring::Ring;
pub use service::{Arbiters, Ids, Service, Settings, SharePer, SocketLimits};
pub use socket::{Drain, Frame, Outbound, Outflow, Outlet, Room, Socket, outlet};
