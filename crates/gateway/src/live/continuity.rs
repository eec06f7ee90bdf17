//! The owner's capsules: taken when a socket opens on a device, kept while the owner talks there.
//!
//! A capsule is on disk for the two minutes in which a device may come back. Taking it gives the device to the new socket:
//! no older one can write any more, and of two that open at once one finds it. Every trouble with the store means that
//! nothing is recognised early, and nothing worse. Owns the way between the core's words ([`Hint`], [`Keepsake`]) and the
//! store's bytes; what a hint is worth is the core's to decide.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use matcher_core::receipt::VoiceName;
use matcher_core::{Device, Embedding, Gallery, Ground, Hint, Keepsake, Kept, Scope, Speaker};
use telemetry::{Metrics, Reconnect};
use tokio::sync::watch;

use super::clock::Clock;
use crate::capsule::{Capsule, NotOpened, Sealer, device_key, print_digest};
use crate::store::{DeviceKey, Store};

/// The longest that a socket's start, or the end of the process, waits for the store. Beyond it the owner needs the usual
/// five seconds.
const STORE_MAX: Duration = Duration::from_millis(250);

/// A socket's right to write its device's capsule.
#[derive(Debug)]
pub(super) struct Holder {
    device: DeviceKey,
    token: String,
    /// Rises with every write, so that a late one changes nothing.
    revision: AtomicU64,
}

/// See the module's text.
pub struct Capsules {
    store: Arc<dyn Store>,
    sealer: Sealer,
    metrics: Metrics,
    clock: Clock,
    life: Duration,
    /// Speech that a capsule needs behind it, as every name does.
    evidence_floor: Duration,
    /// Writes that are under way.
    writing: watch::Sender<usize>,
}

/// What a socket found on its device.
#[derive(Debug, Clone)]
pub(super) struct Opened {
    pub(super) holder: Option<Arc<Holder>>,
    capsule: Option<Capsule>,
}

impl Opened {
    /// Without a device nothing is found, and nothing kept.
    pub(super) const fn nothing() -> Self {
        Self { holder: None, capsule: None }
    }

    /// A socket that enters one more conversation: what was found is used up.
    pub(super) const fn again(holder: Option<Arc<Holder>>) -> Self {
        Self { holder, capsule: None }
    }
}

impl Capsules {
    /// The capsules in `store`, readable with `sealer`'s key, for `life` after the owner was heard last, with the speech
    /// behind them that a name needs.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        sealer: Sealer,
        metrics: Metrics,
        (clock, life, evidence_floor): (Clock, Duration, Duration),
    ) -> Self {
        Self { store, sealer, metrics, clock, life, evidence_floor, writing: watch::Sender::new(0) }
    }

    /// A socket opens on a device: takes what is there, and gives the device to `token`.
    pub(super) async fn open(&self, account: &str, device: Option<&str>, token: String) -> Opened {
        let Some(device) = device else {
            self.metrics.reconnect(Reconnect::NoDevice);
            return Opened::nothing();
        };
        self.metrics.reconnect(Reconnect::Attempted);
        let device = device_key(account, device);
        let (store, taker) = (self.store.clone(), token.clone());
        let now_ms = self.now_ms();
        let taking = tokio::task::spawn_blocking(move || store.take_capsule(device, &taker, now_ms));
        let Ok(Ok(Ok(sealed))) = tokio::time::timeout(STORE_MAX, taking).await else {
            // The take may still come to pass; without the token in hand this socket writes nothing.
            tracing::warn!("a device's capsule cannot be read; its owner needs the usual evidence");
            self.metrics.reconnect(Reconnect::Unavailable);
            return Opened::nothing();
        };
        let holder = Holder { device, token, revision: AtomicU64::new(0) };
        let capsule = self.unsealed(device, sealed.as_deref()).map_err(|reason| self.metrics.reconnect(reason)).ok();
        Opened { holder: Some(Arc::new(holder)), capsule }
    }

    fn unsealed(&self, device: DeviceKey, sealed: Option<&[u8]>) -> Result<Capsule, Reconnect> {
        let sealed = sealed.ok_or(Reconnect::Absent)?;
        self.sealer.open_sealed(device, sealed).map_err(|not_opened| {
            match not_opened {
                NotOpened::Version(version) => tracing::warn!(version, "a device's capsule has another version"),
                NotOpened::Damaged => tracing::warn!("a device's capsule is damaged"),
            }
            Reconnect::Corrupt
        })
    }

    /// What the core may make of what was found, for the people of one lane.
    pub(super) fn device(&self, opened: &Opened, gallery: &Gallery) -> Device {
        match (&opened.holder, &opened.capsule) {
            (None, _) => Device::Unknown,
            (Some(_), None) => Device::Fresh,
            (Some(_), Some(capsule)) => match self.hint(capsule, gallery) {
                Some(hint) => Device::Reconnecting(Box::new(hint)),
                None => {
                    self.metrics.reconnect(Reconnect::ExpiredOrProfile);
                    Device::Fresh
                }
            },
        }
    }

    fn hint(&self, capsule: &Capsule, gallery: &Gallery) -> Option<Hint> {
        let age = Duration::from_millis(u64::try_from(self.now_ms() - capsule.observed_ms).ok()?);
        let left = self.life.checked_sub(age)?;
        let print = &gallery.owner()?.embedding;
        let is_owner = print_digest(print) == capsule.print && capsule.seconds >= self.evidence_floor.as_secs_f64();
        let centroid = Embedding::of_size(&capsule.centroid, print.size()).ok().filter(|_| is_owner)?;
        let ground = Ground {
            conversation: capsule.conversation.as_str().into(),
            voice: VoiceName {
                speaker: Speaker(capsule.speaker),
                scope: Scope::of(&capsule.recording, &capsule.scope),
            },
            receipt_generation: capsule.receipt_generation,
            print: print.clone(),
        };
        Some(Hint { ground, centroid, usable_until: self.clock.now().after(left) })
    }

    /// Keeps or withdraws, in the background. The order of the calls counts, whenever the writes arrive.
    pub(super) fn keep(&self, holder: &Holder, keepsake: Keepsake, (conversation, recording): (&str, &str)) {
        let revision = holder.revision.fetch_add(1, Ordering::SeqCst) + 1;
        let body = match keepsake {
            Keepsake::Withdraw => None,
            Keepsake::Keep(kept) => Some(self.sealer.seal(&self.capsule(holder, *kept, (conversation, recording)))),
        };
        let (store, device, token) = (self.store.clone(), holder.device, holder.token.clone());
        let now_ms = self.now_ms();
        let writing = move || store.keep_capsule(device, (&token, revision), body.as_deref(), now_ms);
        let under_way = self.writing.clone();
        under_way.send_modify(|writes| *writes += 1);
        tokio::task::spawn_blocking(move || {
            if let Err(error) = writing() {
                tracing::warn!(%error, "a device's capsule was not written");
            }
            under_way.send_modify(|writes| *writes -= 1);
        });
    }

    /// Returns when no write is under way, or after a quarter of a second.
    pub async fn wait_for_disk(&self) {
        let mut writing = self.writing.subscribe();
        if tokio::time::timeout(STORE_MAX, writing.wait_for(|writes| *writes == 0)).await.is_err() {
            tracing::warn!("a device's capsule was not written in time");
        }
    }

    fn capsule(&self, holder: &Holder, kept: Kept, (conversation, recording): (&str, &str)) -> Capsule {
        Capsule {
            conversation: conversation.to_owned(),
            recording: recording.to_owned(),
            speaker: kept.voice.speaker.0,
            scope: kept.voice.scope.to_string(),
            receipt_generation: kept.receipt_generation,
            device: holder.device,
            print: print_digest(&kept.print),
            centroid: kept.centroid.values().to_vec(),
            seconds: kept.seconds,
            observed_ms: self.clock.wall_ms(kept.observed),
        }
    }

    fn now_ms(&self) -> i64 {
        self.clock.wall_ms(self.clock.now())
    }
}

impl std::fmt::Debug for Capsules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Capsules")
    }
}
