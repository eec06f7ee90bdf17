//! What people decide about voices, written down before anybody hears of it.
//!
//! A correction is one read-change-write of the conversation's receipt in the store, on a blocking thread. It is answered
//! and published only when it is on disk. Owns the way to the store; precedence among corrections is the core's.

use std::sync::Arc;

use matcher_core::receipt::{Correction, Full, Named, Receipt, Ruling};
use matcher_core::{PersonId, Role};

use crate::store::{Store, StoreError};

/// How often a change is tried again that somebody else's change came before.
const TRIES: usize = 3;

/// What a client decides: as [`Ruling`], with a person by id alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// The voice is this person.
    Is(String),
    /// Anything that needs no look at who is enrolled.
    Ruling(Ruling),
}

/// Why nothing was corrected.
#[derive(Debug, thiserror::Error)]
pub enum NotCorrected {
    /// Nobody has this id.
    #[error("nobody with the id {0:?} is enrolled")]
    NoSuchPerson(String),
    /// These segments are not known, or belong to another voice; nothing was written.
    #[error("segment {0:?} is not one of this voice's recent segments; nothing was written")]
    NotOfThisVoice(String),
    /// Nobody said anything with this number.
    #[error("speaker {0} was not heard here; name the scope too")]
    Unheard(u32),
    /// The receipt is full.
    #[error(transparent)]
    Full(#[from] Full),
    /// The store failed.
    #[error("the correction could not be written: {0}")]
    Store(#[from] StoreError),
    /// The conversation ended meanwhile.
    #[error("the conversation ended meanwhile; try again")]
    Ended,
}

/// The receipt of a conversation as it is kept, or `None` when the one of generation `known` is still the newest.
///
/// # Errors
/// When the store cannot be read.
pub(super) async fn read_newer(
    store: Arc<dyn Store>,
    conversation: String,
    known: u64,
) -> Result<Option<Receipt>, NotCorrected> {
    let reading = move || {
        let is_known = store.receipt_generation(&conversation)? == known;
        Ok(if is_known { None } else { store.receipt(&conversation)? })
    };
    tokio::task::spawn_blocking(reading).await.unwrap_or(Err(NotCorrected::Ended))
}

/// The receipt of a conversation, an empty one when nobody decided anything yet.
///
/// # Errors
/// When the store cannot be read.
pub async fn read(store: Arc<dyn Store>, conversation: String) -> Result<Receipt, NotCorrected> {
    Ok(read_newer(store, conversation, 0).await?.unwrap_or_default())
}

/// Makes one correction and returns the receipt as it is kept from here on.
///
/// # Errors
/// When the person is unknown, the receipt is full, or the store fails; nothing is changed then.
pub async fn correct(
    store: Arc<dyn Store>,
    conversation: String,
    correction: Correction,
    wish: Wish,
) -> Result<Receipt, NotCorrected> {
    let writing = move || {
        let ruling = ruling(&*store, wish)?;
        let correction = Correction { ruling, ..correction };
        let mut outcome = change(&*store, &conversation, &correction);
        for _ in 1..TRIES {
            if !matches!(outcome, Err(NotCorrected::Store(StoreError::ReceiptChanged))) {
                break;
            }
            outcome = change(&*store, &conversation, &correction);
        }
        outcome
    };
    tokio::task::spawn_blocking(writing).await.unwrap_or(Err(NotCorrected::Ended))
}

fn change(store: &dyn Store, conversation: &str, correction: &Correction) -> Result<Receipt, NotCorrected> {
    let mut receipt = store.receipt(conversation)?.unwrap_or_default();
    receipt.correct(correction)?;
    store.save_receipt(conversation, &receipt)?;
    Ok(receipt)
}

fn ruling(store: &dyn Store, wish: Wish) -> Result<Ruling, NotCorrected> {
    let id = match wish {
        Wish::Ruling(ruling) => return Ok(ruling),
        Wish::Is(id) => id,
    };
    let person = store.people()?.into_iter().find(|person| person.id == id);
    let person = person.ok_or(NotCorrected::NoSuchPerson(id))?;
    Ok(Ruling::Is(Named {
        person: PersonId::new(&person.id),
        name: person.name.as_str().into(),
        role: if person.is_owner { Role::Owner } else { Role::Person },
    }))
}
