//! What people decide about voices: written down before anybody hears of it, and read before anything is published.
//!
//! ```text
//!   correct:  read ─▶ change ─▶ write ─▶ raise the edition ─▶ answer          hear:  edition ─▶ read ─▶ … ─▶ still current?
//! ```
//! A correction is one read-change-write of the conversation's receipt in the store, on a blocking thread. It is answered
//! and published only when it is on disk. Whoever is about to publish reads all receipts at one moment, and in the step
//! in which it publishes asks [`Corrections::is_current`]: a correction that was answered meanwhile sends it to read again.
//! Owns the way to the store; precedence among corrections is the core's.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use matcher_core::receipt::{Correction, Full, Named, Receipt, Ruling};
use matcher_core::{Donor, PersonId, Role, Scope};

use crate::people::now_ms;
use crate::store::{Filed, Store, StoreError};

/// How often a change is tried again that somebody else's change came before.
const TRIES: usize = 3;

/// Editions are counted for conversations by hash: few enough for 8 KiB, and so many that a conversation which is edited
/// without end makes hardly any other read again.
const EDITIONS: usize = 1024;

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
    /// Others were corrected as fast as it was read.
    #[error("corrections came faster than they could be read")]
    Overtaken,
    /// The store did not answer in time.
    #[error("the store did not answer in time")]
    Late,
    /// The conversation ended meanwhile.
    #[error("the conversation ended meanwhile; try again")]
    Ended,
}

/// What one reading found.
#[derive(Debug)]
pub(crate) struct Word {
    /// The conversation's own receipt, when it is newer than what was known.
    pub(crate) newer: Option<Receipt>,
    /// What others answered.
    pub(crate) donors: Vec<(Arc<str>, Donor)>,
    editions: Vec<(usize, u64)>,
}

/// See the module's text.
pub struct Corrections {
    store: Arc<dyn Store>,
    /// Rise after each change of a receipt, and before it is answered.
    editions: Box<[AtomicU64]>,
    /// Keyed, so that nobody can make an id that shares its place with another's.
    hasher: RandomState,
}

impl Corrections {
    /// The corrections in `store`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, editions: (0..EDITIONS).map(|_| AtomicU64::new(0)).collect(), hasher: RandomState::new() }
    }

    /// The receipt of a conversation, an empty one when nobody decided anything yet.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn read(&self, conversation: &str) -> Result<Receipt, NotCorrected> {
        let id = conversation.to_owned();
        self.blocking(move |store| Ok(store.receipt(&id)?)).await.map(Option::unwrap_or_default)
    }

    /// A conversation begins or goes on, and its receipt is read.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub(crate) async fn open(&self, conversation: &str) -> Result<Receipt, NotCorrected> {
        let id = conversation.to_owned();
        let opening = move |store: &dyn Store| {
            store.open_conversation(&id, now_ms())?;
            Ok(store.receipt(&id)?.unwrap_or_default())
        };
        self.blocking(opening).await
    }

    /// The receipt of a conversation if it is newer than `known`, and what people decided in the `donors`, all as of one
    /// moment.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) async fn hear(
        &self,
        conversation: &str,
        known: u64,
        donors: Vec<Arc<str>>,
    ) -> Result<Word, NotCorrected> {
        let editions = self.editions_of(std::iter::once(conversation).chain(donors.iter().map(|donor| &**donor)));
        let (id, asked) = (conversation.to_owned(), donors.clone());
        let (newer, words) = self.blocking(move |store| hear(store, &id, known, &asked)).await?;
        Ok(Word { newer, donors: donors.into_iter().zip(words).collect(), editions })
    }

    /// Whether no receipt of a reading changed since.
    pub(crate) fn is_current(&self, word: &Word) -> bool {
        word.editions.iter().all(|(at, edition)| self.edition(*at) == *edition)
    }

    /// Makes one correction and returns the receipt as it is kept from here on.
    ///
    /// # Errors
    /// When the person is unknown, the receipt is full, or the store fails; nothing is changed then.
    pub async fn correct(
        &self,
        conversation: &str,
        correction: Correction,
        wish: Wish,
    ) -> Result<Receipt, NotCorrected> {
        let id = conversation.to_owned();
        let corrected = self.blocking(move |store| {
            let correction = Correction { ruling: ruling(store, wish)?, ..correction };
            change(store, &id, |receipt| receipt.correct(&correction))
        });
        self.raised(conversation, corrected.await)
    }

    /// Takes the names that people gave in conversation `from`, on the stream that goes on, into conversation `to`.
    ///
    /// # Errors
    /// When the store cannot be read or written; nothing is changed then.
    pub(crate) async fn carry(&self, from: &str, to: &str, scope: &Scope) -> Result<(), NotCorrected> {
        let (before, id, scope) = (from.to_owned(), to.to_owned(), scope.clone());
        let carried = self.blocking(move |store| {
            let names = store.receipt(&before)?.unwrap_or_default().portable(&scope);
            if names.is_empty() { Ok(Receipt::default()) } else { change(store, &id, |receipt| receipt.carry(&names)) }
        });
        self.raised(to, carried.await).map(|_| ())
    }

    /// Something became of a conversation's receipt: whoever read it before reads again.
    pub(crate) fn raise(&self, conversation: &str) {
        if let Some(edition) = self.editions.get(self.place(conversation)) {
            edition.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Also after a failure: the write may have reached the disk before its answer was lost.
    fn raised<T>(&self, conversation: &str, changed: Result<T, NotCorrected>) -> Result<T, NotCorrected> {
        self.raise(conversation);
        changed
    }

    fn editions_of<'a>(&self, conversations: impl Iterator<Item = &'a str>) -> Vec<(usize, u64)> {
        conversations.map(|conversation| self.place(conversation)).map(|at| (at, self.edition(at))).collect()
    }

    fn place(&self, conversation: &str) -> usize {
        let hash = self.hasher.hash_one(conversation);
        usize::try_from(hash % EDITIONS as u64).expect("a remainder below 1024 is a usize")
    }

    fn edition(&self, at: usize) -> u64 {
        self.editions.get(at).map_or(0, |edition| edition.load(Ordering::SeqCst))
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Store) -> Result<T, NotCorrected> + Send + 'static,
    ) -> Result<T, NotCorrected> {
        let store = self.store.clone();
        tokio::task::spawn_blocking(move || work(&*store)).await.unwrap_or(Err(NotCorrected::Ended))
    }
}

impl std::fmt::Debug for Corrections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Corrections")
    }
}

fn hear(
    store: &dyn Store,
    conversation: &str,
    known: u64,
    donors: &[Arc<str>],
) -> Result<(Option<Receipt>, Vec<Donor>), NotCorrected> {
    if donors.is_empty() {
        // What nearly every verdict asks: a number, and seldom more.
        let is_known = store.receipt_generation(conversation)? == known;
        return Ok((if is_known { None } else { store.receipt(conversation)? }, Vec::new()));
    }
    let ids: Vec<&str> = std::iter::once(conversation).chain(donors.iter().map(|donor| &**donor)).collect();
    let mut filed = store.receipts(&ids)?.into_iter();
    let own = match filed.next() {
        Some(Filed::Kept(receipt)) => receipt,
        Some(Filed::Deleted) | None => return Err(NotCorrected::Ended),
    };
    let words = filed.map(|filed| match filed {
        Filed::Kept(receipt) => Donor::Read(Arc::new(receipt)),
        Filed::Deleted => Donor::Deleted,
    });
    Ok(((own.generation() > known).then_some(own), words.collect()))
}

/// One read-change-write, and again when somebody else's came between.
fn change(
    store: &dyn Store,
    conversation: &str,
    edit: impl Fn(&mut Receipt) -> Result<(), Full>,
) -> Result<Receipt, NotCorrected> {
    let once = || {
        let mut receipt = store.receipt(conversation)?.unwrap_or_default();
        let before = receipt.generation();
        edit(&mut receipt)?;
        if receipt.generation() > before {
            store.save_receipt(conversation, &receipt)?;
        }
        Ok(receipt)
    };
    let mut outcome = once();
    for _ in 1..TRIES {
        if !matches!(outcome, Err(NotCorrected::Store(StoreError::ReceiptChanged))) {
            break;
        }
        outcome = once();
    }
    outcome
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
