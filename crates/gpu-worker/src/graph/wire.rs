//! Protocol buffers on the wire: a message is a row of numbered fields. What they mean is not known here.

use std::borrow::Cow;

/// One field of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field<'a> {
    pub(super) number: u64,
    pub(super) value: Value<'a>,
}

/// What a field holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    /// Text, another message, or a packed row of numbers.
    Bytes(Cow<'a, [u8]>),
    Fixed32([u8; 4]),
}

impl Field<'_> {
    pub(super) fn varint(number: u64, value: u64) -> Self {
        Self { number, value: Value::Varint(value) }
    }

    pub(super) fn bytes(number: u64, bytes: Vec<u8>) -> Self {
        Self { number, value: Value::Bytes(Cow::Owned(bytes)) }
    }

    pub(super) fn text(number: u64, text: &str) -> Self {
        Self::bytes(number, text.as_bytes().to_vec())
    }
}

/// The fields of a message, or nothing when these bytes are none.
pub(super) fn parse(mut bytes: &[u8]) -> Option<Vec<Field<'_>>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = take_varint(&mut bytes)?;
        let value = match key & 7 {
            0 => Value::Varint(take_varint(&mut bytes)?),
            1 => Value::Fixed64(*take_chunk(&mut bytes)?),
            2 => {
                let length = usize::try_from(take_varint(&mut bytes)?).ok()?;
                let (taken, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                Value::Bytes(Cow::Borrowed(taken))
            }
            5 => Value::Fixed32(*take_chunk(&mut bytes)?),
            _ => return None,
        };
        fields.push(Field { number: key >> 3, value });
    }
    Some(fields)
}

/// The bytes of a message.
pub(super) fn write(fields: &[Field<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    for Field { number, value } in fields {
        let key = number << 3;
        match value {
            Value::Varint(value) => {
                put_varint(&mut out, key);
                put_varint(&mut out, *value);
            }
            Value::Fixed64(bytes) => {
                put_varint(&mut out, key | 1);
                out.extend_from_slice(bytes);
            }
            Value::Bytes(bytes) => {
                put_varint(&mut out, key | 2);
                put_varint(&mut out, bytes.len() as u64);
                out.extend_from_slice(bytes);
            }
            Value::Fixed32(bytes) => {
                put_varint(&mut out, key | 5);
                out.extend_from_slice(bytes);
            }
        }
    }
    out
}

/// Texts under this number.
pub(super) fn texts<'f>(fields: &'f [Field<'_>], number: u64) -> impl Iterator<Item = String> + 'f {
    fields.iter().filter(move |field| field.number == number).filter_map(|field| match &field.value {
        Value::Bytes(bytes) => String::from_utf8(bytes.to_vec()).ok(),
        Value::Varint(_) | Value::Fixed32(_) | Value::Fixed64(_) => None,
    })
}

/// Numbers under this number, packed or each in a field of its own.
pub(super) fn varints(fields: &[Field<'_>], number: u64) -> Option<Vec<u64>> {
    let mut found = Vec::new();
    for field in fields.iter().filter(|field| field.number == number) {
        match &field.value {
            Value::Varint(value) => found.push(*value),
            Value::Bytes(packed) => {
                let mut packed = &packed[..];
                while !packed.is_empty() {
                    found.push(take_varint(&mut packed)?);
                }
            }
            Value::Fixed32(_) | Value::Fixed64(_) => return None,
        }
    }
    Some(found)
}

fn take_chunk<'a, const SIZE: usize>(bytes: &mut &'a [u8]) -> Option<&'a [u8; SIZE]> {
    let (chunk, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(chunk)
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(u8::try_from(value & 0x7f).unwrap_or_default() | 0x80);
        value >>= 7;
    }
    out.push(u8::try_from(value).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn field() -> impl Strategy<Value = Field<'static>> {
        let value = prop_oneof![
            any::<u64>().prop_map(Value::Varint),
            any::<[u8; 8]>().prop_map(Value::Fixed64),
            any::<[u8; 4]>().prop_map(Value::Fixed32),
            proptest::collection::vec(any::<u8>(), 0..300).prop_map(|bytes| Value::Bytes(Cow::Owned(bytes))),
        ];
        (1_u64..1 << 29, value).prop_map(|(number, value)| Field { number, value })
    }

    proptest! {
        #[test]
        fn what_is_written_reads_as_it_was(fields in proptest::collection::vec(field(), 0..20)) {
            let bytes = write(&fields);
            prop_assert_eq!(parse(&bytes).unwrap(), fields);
        }

        #[test]
        fn no_bytes_at_all_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Some(fields) = parse(&bytes) {
                drop(varints(&fields, 1));
            }
        }
    }

    #[test]
    fn numbers_are_read_packed_and_one_by_one() {
        let fields = [Field::varint(1, 300), Field::bytes(1, vec![0xac, 0x02, 0x05]), Field::varint(2, 9)];
        assert_eq!(varints(&fields, 1), Some(vec![300, 300, 5]));
    }
}
