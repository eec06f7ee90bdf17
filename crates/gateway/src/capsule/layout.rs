//! A capsule as bytes, before it is sealed: the fields in their order, numbers little-endian, texts and the centroid with
//! their length in front. Floats keep every bit. Reading takes exactly what [`bytes`] writes, and nothing after it.

use super::Capsule;
use crate::store::DeviceKey;

pub(super) fn bytes(capsule: &Capsule) -> Vec<u8> {
    let mut bytes = Vec::new();
    for text in [&capsule.conversation, &capsule.recording, &capsule.scope] {
        bytes.extend(length(text.len()));
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes.extend(capsule.speaker.to_le_bytes());
    bytes.extend(capsule.receipt_generation.to_le_bytes());
    bytes.extend(capsule.device.0);
    bytes.extend(capsule.print);
    bytes.extend(capsule.seconds.to_le_bytes());
    bytes.extend(capsule.observed_ms.to_le_bytes());
    bytes.extend(length(capsule.centroid.len()));
    bytes.extend(capsule.centroid.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

fn length(length: usize) -> [u8; 4] {
    u32::try_from(length).expect("ids and vectors are bounded where they come in").to_le_bytes()
}

pub(super) fn capsule(bytes: &[u8]) -> Option<Capsule> {
    let mut rest = Rest(bytes);
    let (conversation, recording, scope) = (rest.text()?, rest.text()?, rest.text()?);
    let capsule = Capsule {
        conversation,
        recording,
        scope,
        speaker: u32::from_le_bytes(rest.array()?),
        receipt_generation: u64::from_le_bytes(rest.array()?),
        device: DeviceKey(rest.array()?),
        print: rest.array()?,
        seconds: f64::from_le_bytes(rest.array()?),
        observed_ms: i64::from_le_bytes(rest.array()?),
        centroid: rest.vector()?,
    };
    rest.0.is_empty().then_some(capsule)
}

/// What is not read yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*array)
    }

    /// So many items of `size` bytes as the length in front says. Nothing is allocated before they are known to be there.
    fn items(&mut self, size: usize) -> Option<&'a [u8]> {
        let count = usize::try_from(u32::from_le_bytes(self.array()?)).ok()?;
        let (items, rest) = self.0.split_at_checked(count.checked_mul(size)?)?;
        self.0 = rest;
        Some(items)
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.items(1)?.to_vec()).ok()
    }

    fn vector(&mut self) -> Option<Vec<f32>> {
        let (values, _) = self.items(4)?.as_chunks::<4>();
        Some(values.iter().map(|value| f32::from_le_bytes(*value)).collect())
    }
}
