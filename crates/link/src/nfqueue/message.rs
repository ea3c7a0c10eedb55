//! Messages of `nfnetlink_queue`, between bytes and what they say.
//!
//! A netlink message is a header of 16 bytes, here followed by the 4 of `nfgenmsg`, and
//! then by attributes: each a length, a kind and contents, padded to 4 bytes. Headers are
//! in the order of bytes of this machine, contents in that of networks. The numbers are
//! those of Linux's `linux/netlink.h`, `linux/netfilter/nfnetlink.h` and
//! `linux/netfilter/nfnetlink_queue.h`.
//!
//! [`parse`] takes any bytes: what contradicts itself is an error, what it does not know
//! it passes over, and nothing is copied or allocated.

/// What the kernel says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// A packet that is held until its verdict.
    Held(Held<'a>),
    /// What became of a message of ours. Messages that go well are only answered if they
    /// ask for it; verdicts do not.
    Answer {
        /// The error, or 0 if all went well.
        errno: i32,
    },
}

/// A packet that the kernel holds until its verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held<'a> {
    /// Its number in its queue, by which a verdict names it.
    pub id: u32,
    /// Its EtherType: 0x0800 for IPv4, 0x86dd for IPv6.
    pub protocol: u16,
    /// The packet from its IP header on, or as much of its start as is copied:
    /// [`Headers::read_captured`](tidegate_wire::Headers::read_captured) reads it.
    pub payload: &'a [u8],
    /// Its bytes from its IP header on, those that are not copied too.
    pub length: u32,
}

impl Held<'_> {
    /// Whether the payload is all of the packet.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.payload.len() == self.length as usize
    }
}

/// Why bytes are no message.
///
/// ```
/// use tidegate_link::nfqueue::parse;
///
/// let error = parse(&[0; 10], |_| {}).unwrap_err();
/// assert_eq!(error.to_string(), "found 10 bytes of netlink header, expected 16");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// Something ends within a part that is always as long.
    #[error("found {found} bytes of {part}, expected {expected}")]
    Short {
        /// What is cut.
        part: &'static str,
        /// Bytes of it that are there.
        found: usize,
        /// Bytes that it has.
        expected: usize,
    },
    /// Something states a length that leaves no room for its own header, or that is more
    /// than what is there.
    #[error("found a stated length of {stated} bytes of {part}, expected {least} to {most}")]
    Length {
        /// What states it.
        part: &'static str,
        /// The length that it states.
        stated: usize,
        /// The length of its header.
        least: usize,
        /// The bytes that are there.
        most: usize,
    },
    /// A packet has no number.
    #[error("found a packet without NFQA_PACKET_HDR, expected its number")]
    NoNumber,
    /// A message was longer than the memory for it.
    #[error("found a message of {found} bytes, expected at most {expected}")]
    Cut {
        /// Its bytes.
        found: usize,
        /// The bytes that there is memory for.
        expected: usize,
    },
}

/// A verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// The packet goes on.
    Accept,
    /// The packet is gone.
    Drop,
    /// These bytes go on instead, from the IP header on. They have to be all of a packet:
    /// what of the old one was not copied is gone.
    Replace(&'a [u8]),
}

/// Most bytes of a packet that an attribute can hold: its length has 16 bits and counts
/// its own header.
pub(super) const MOST_PAYLOAD: usize = u16::MAX as usize - ATTRIBUTE_HEADER;

/// Bytes of a message around the payload: its headers, and all attributes that the kernel
/// adds without being asked, with room for those of kernels to come.
pub(super) const AROUND_PAYLOAD: usize = 4_096;

/// Bytes of a verdict without payload.
pub(super) const VERDICT: usize = NETLINK_HEADER + GENERAL_HEADER + ATTRIBUTE_HEADER + 8;

const NETLINK_HEADER: usize = 16;
/// `struct nfgenmsg`: address family, version, number of the queue.
const GENERAL_HEADER: usize = 4;
const ATTRIBUTE_HEADER: usize = 4;

/// `NFNL_SUBSYS_QUEUE`, in the upper byte of the kind of a message.
const SUBSYSTEM: u16 = 3 << 8;
const PACKET: u16 = SUBSYSTEM;
const VERDICT_OF_ONE: u16 = SUBSYSTEM | 1;
const CONFIG: u16 = SUBSYSTEM | 2;
const NLMSG_ERROR: u16 = 2;

const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;

/// `NLA_TYPE_MASK`: the two bits above say how the contents are laid out.
const KIND: u16 = 0x3fff;

const NFQA_PACKET_HDR: u16 = 1;
const NFQA_VERDICT_HDR: u16 = 2;
const NFQA_PAYLOAD: u16 = 10;
const NFQA_CAP_LEN: u16 = 13;

const NFQA_CFG_CMD: u16 = 1;
const NFQA_CFG_PARAMS: u16 = 2;
const NFQA_CFG_QUEUE_MAXLEN: u16 = 3;
const NFQA_CFG_MASK: u16 = 4;
const NFQA_CFG_FLAGS: u16 = 5;

const NFQNL_CFG_CMD_BIND: u8 = 1;
const NFQNL_CFG_CMD_UNBIND: u8 = 2;
const NFQNL_COPY_PACKET: u8 = 2;
const NFQA_CFG_F_FAIL_OPEN: u32 = 1;
const NFQA_CFG_F_GSO: u32 = 4;

const NF_DROP: u32 = 0;
const NF_ACCEPT: u32 = 1;

/// Reads all messages in what one read of the socket returned.
///
/// # Errors
/// The bytes contradict themselves. What came before was handed over.
///
/// ```
/// use tidegate_link::nfqueue::{Message, parse};
///
/// // An answer: there is no such packet (2).
/// let mut bytes = Vec::new();
/// bytes.extend(20_u32.to_ne_bytes()); // nlmsg_len
/// bytes.extend(2_u16.to_ne_bytes()); // nlmsg_type: NLMSG_ERROR
/// bytes.extend(0_u16.to_ne_bytes()); // nlmsg_flags
/// bytes.extend(0_u32.to_ne_bytes()); // nlmsg_seq
/// bytes.extend(0_u32.to_ne_bytes()); // nlmsg_pid
/// bytes.extend((-2_i32).to_ne_bytes());
/// let mut messages = 0;
/// parse(&bytes, |message| {
///     assert_eq!(message, Message::Answer { errno: 2 });
///     messages += 1;
/// })?;
/// assert_eq!(messages, 1);
/// # Ok::<(), tidegate_link::nfqueue::MessageError>(())
/// ```
pub fn parse(mut bytes: &[u8], mut each: impl FnMut(Message<'_>)) -> Result<(), MessageError> {
    while !bytes.is_empty() {
        let &[l0, l1, l2, l3, k0, k1, ..] = fixed::<NETLINK_HEADER>(bytes, "netlink header")?;
        let length = u32::from_ne_bytes([l0, l1, l2, l3]) as usize;
        let contents = inside(bytes, NETLINK_HEADER, length, "a netlink message")?;
        match u16::from_ne_bytes([k0, k1]) {
            PACKET => each(Message::Held(held(contents)?)),
            NLMSG_ERROR => {
                let error = i32::from_ne_bytes(*fixed(contents, "netlink error")?);
                // The kernel says it as a negative number.
                each(Message::Answer { errno: error.saturating_neg() });
            }
            _ => {}
        }
        bytes = after(bytes, length);
    }
    Ok(())
}

/// Reads what follows the netlink header of a packet.
fn held(contents: &[u8]) -> Result<Held<'_>, MessageError> {
    fixed::<GENERAL_HEADER>(contents, "nfgenmsg")?;
    let mut attributes = &contents[GENERAL_HEADER..];
    let mut number = None;
    let mut payload: &[u8] = &[];
    let mut stated = 0;
    while !attributes.is_empty() {
        let &[l0, l1, k0, k1] = fixed::<ATTRIBUTE_HEADER>(attributes, "attribute header")?;
        let length = usize::from(u16::from_ne_bytes([l0, l1]));
        let value = inside(attributes, ATTRIBUTE_HEADER, length, "an attribute")?;
        match u16::from_ne_bytes([k0, k1]) & KIND {
            NFQA_PACKET_HDR => {
                let &[i0, i1, i2, i3, p0, p1, _] = fixed::<7>(value, "NFQA_PACKET_HDR")?;
                let id = u32::from_be_bytes([i0, i1, i2, i3]);
                number = Some((id, u16::from_be_bytes([p0, p1])));
            }
            NFQA_PAYLOAD => payload = value,
            NFQA_CAP_LEN => stated = u32::from_be_bytes(*fixed(value, "NFQA_CAP_LEN")?),
            _ => {}
        }
        attributes = after(attributes, length);
    }
    let (id, protocol) = number.ok_or(MessageError::NoNumber)?;
    // Stated only of a packet that was cut. A payload has less than 64 kB.
    let length = stated.max(u32::try_from(payload.len()).unwrap_or(u32::MAX));
    Ok(Held { id, protocol, payload, length })
}

/// The start of something that is always as long.
fn fixed<'a, const N: usize>(
    bytes: &'a [u8],
    part: &'static str,
) -> Result<&'a [u8; N], MessageError> {
    let short = MessageError::Short { part, found: bytes.len(), expected: N };
    bytes.first_chunk().ok_or(short)
}

/// What is behind the header of something that states its length.
fn inside<'a>(
    bytes: &'a [u8],
    header: usize,
    stated: usize,
    part: &'static str,
) -> Result<&'a [u8], MessageError> {
    let wrong = MessageError::Length { part, stated, least: header, most: bytes.len() };
    bytes.get(header..stated).ok_or(wrong)
}

/// What follows something of this length; the last one may lack its padding.
fn after(bytes: &[u8], length: usize) -> &[u8] {
    bytes.get(length.next_multiple_of(4)..).unwrap_or_default()
}

/// The message that makes a queue ours, all of it or nothing; it asks for an answer.
pub(super) fn bind(number: u16, copy_bytes: u32, longest: u32, fail_open: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let start = begin(&mut bytes, CONFIG, NLM_F_REQUEST | NLM_F_ACK, number);
    // Padding, and an address family that only older kernels asked for.
    attribute(&mut bytes, NFQA_CFG_CMD, &[NFQNL_CFG_CMD_BIND, 0, 0, 0]);
    let [b0, b1, b2, b3] = copy_bytes.to_be_bytes();
    attribute(&mut bytes, NFQA_CFG_PARAMS, &[b0, b1, b2, b3, NFQNL_COPY_PACKET]);
    attribute(&mut bytes, NFQA_CFG_QUEUE_MAXLEN, &longest.to_be_bytes());
    // Without NFQA_CFG_F_GSO, the kernel splits super-packets and fills in checksums.
    let flags = if fail_open { NFQA_CFG_F_FAIL_OPEN } else { 0 };
    attribute(&mut bytes, NFQA_CFG_FLAGS, &flags.to_be_bytes());
    let mask = NFQA_CFG_F_FAIL_OPEN | NFQA_CFG_F_GSO;
    attribute(&mut bytes, NFQA_CFG_MASK, &mask.to_be_bytes());
    end(&mut bytes, start);
    bytes
}

/// The message that gives a queue back.
pub(super) fn unbind(number: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    let start = begin(&mut bytes, CONFIG, NLM_F_REQUEST, number);
    attribute(&mut bytes, NFQA_CFG_CMD, &[NFQNL_CFG_CMD_UNBIND, 0, 0, 0]);
    end(&mut bytes, start);
    bytes
}

/// Adds the message that decides about a packet. Of a payload, at most [`MOST_PAYLOAD`]
/// bytes fit.
pub(super) fn decide(bytes: &mut Vec<u8>, number: u16, id: u32, verdict: Verdict<'_>) {
    let start = begin(bytes, VERDICT_OF_ONE, NLM_F_REQUEST, number);
    let (code, payload) = match verdict {
        Verdict::Accept => (NF_ACCEPT, None),
        Verdict::Drop => (NF_DROP, None),
        Verdict::Replace(payload) => (NF_ACCEPT, Some(payload)),
    };
    let [c0, c1, c2, c3] = code.to_be_bytes();
    let [i0, i1, i2, i3] = id.to_be_bytes();
    attribute(bytes, NFQA_VERDICT_HDR, &[c0, c1, c2, c3, i0, i1, i2, i3]);
    if let Some(payload) = payload {
        attribute(bytes, NFQA_PAYLOAD, payload);
    }
    end(bytes, start);
}

/// Begins a message, and returns where.
fn begin(bytes: &mut Vec<u8>, kind: u16, flags: u16, number: u16) -> usize {
    let start = bytes.len();
    // Its length is known at its end.
    bytes.extend([0; 4]);
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    // Sequence number and sender: nothing is told apart by them.
    bytes.extend([0; 8]);
    // Any address family, and version 0.
    bytes.extend([0; 2]);
    bytes.extend(number.to_be_bytes());
    start
}

fn attribute(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let value = &value[..value.len().min(MOST_PAYLOAD)];
    let length = u16::try_from(ATTRIBUTE_HEADER + value.len()).expect("it was cut to fit");
    bytes.extend(length.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// Ends the message that began there. All messages are padded, so that the next one is in
/// its place.
fn end(bytes: &mut [u8], start: usize) {
    let length = u32::try_from(bytes.len() - start).expect("a message has less than 128 kB");
    bytes[start..start + 4].copy_from_slice(&length.to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A message of the kernel with this header and these contents.
    fn message(kind: u16, contents: &[u8]) -> Vec<u8> {
        let length = u32::try_from(16 + contents.len()).unwrap();
        let mut bytes = length.to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend(contents);
        bytes
    }

    /// An attribute as `nla_put` writes it, and padding of something other than zeros.
    fn put(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = u16::try_from(4 + value.len()).unwrap().to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0xee);
        bytes
    }

    /// `nfgenmsg` of queue 5, and the number of a packet.
    fn numbered(id: u8) -> Vec<u8> {
        // struct nfqnl_msg_packet_hdr: __be32 packet_id, __be16 hw_protocol, __u8 hook.
        let number = put(1, &[0, 0, 1, id, 0x86, 0xdd, 2]);
        [vec![2, 0, 0, 5], number].concat()
    }

    fn all(bytes: &[u8]) -> Result<Vec<String>, MessageError> {
        let mut found = Vec::new();
        parse(bytes, |message| found.push(format!("{message:?}")))?;
        Ok(found)
    }

    fn said(messages: &[Message<'_>]) -> Vec<String> {
        messages.iter().map(|message| format!("{message:?}")).collect()
    }

    #[test]
    fn a_packet_is_read_with_attributes_in_any_order() {
        // NFQA_IFINDEX_INDEV (5), NFQA_PAYLOAD (10), NFQA_SKB_INFO (14), NFQA_CAP_LEN (13).
        let parts = [
            vec![2, 0, 0, 5],
            put(5, &[0, 0, 0, 9]),
            put(10, b"abcde"),
            put(1, &[0, 0, 1, 7, 0x08, 0x00, 2]),
            put(14, &[0, 0, 0, 1]),
            put(13, &[0, 0, 5, 0xdc]),
        ];
        let expected = Held { id: 263, protocol: 0x0800, payload: b"abcde", length: 1_500 };
        assert!(!expected.is_whole());
        let bytes = message(0x0300, &parts.concat());
        assert_eq!(all(&bytes), Ok(said(&[Message::Held(expected)])));
    }

    #[test]
    fn a_whole_packet_states_no_length_and_may_lack_its_padding() {
        let mut contents = [numbered(1), put(10, b"abcde")].concat();
        contents.truncate(contents.len() - 3);
        let expected = Held { id: 257, protocol: 0x86dd, payload: b"abcde", length: 5 };
        assert!(expected.is_whole());
        let bytes = message(0x0300, &contents);
        assert_eq!(all(&bytes), Ok(said(&[Message::Held(expected)])));
    }

    #[test]
    fn several_messages_of_one_read_are_read() {
        let other = message(3, b"NLMSG_DONE..");
        let mut error = message(2, &(-2_i32).to_ne_bytes());
        // The kernel adds the header of the message that it is about.
        error.extend([0xff; 16]);
        error[0] += if cfg!(target_endian = "little") { 16 } else { 0 };
        error[3] += if cfg!(target_endian = "big") { 16 } else { 0 };
        let packet = message(0x0300, &numbered(2));
        let held = Held { id: 258, protocol: 0x86dd, payload: &[], length: 0 };
        let expected = said(&[Message::Answer { errno: 2 }, Message::Held(held)]);
        assert_eq!(all(&[other, error, packet].concat()), Ok(expected));
        assert_eq!(all(&[]), Ok(Vec::new()));
    }

    #[test]
    fn what_contradicts_itself_says_what_was_found_and_expected() {
        let of = |contents: &[u8]| all(&message(0x0300, contents)).unwrap_err().to_string();
        assert_eq!(of(&[0; 3]), "found 3 bytes of nfgenmsg, expected 4");
        assert_eq!(of(&[0; 4]), "found a packet without NFQA_PACKET_HDR, expected its number");
        assert_eq!(of(&[0; 6]), "found 2 bytes of attribute header, expected 4");
        let stated = "found a stated length of";
        assert_eq!(of(&[0; 8]), format!("{stated} 0 bytes of an attribute, expected 4 to 4"));
        let cut = [numbered(0), vec![9, 0, 10, 0, 1, 2, 3, 4]].concat();
        let native = cfg!(target_endian = "little");
        assert!(!native || of(&cut).ends_with("9 bytes of an attribute, expected 4 to 8"));
        let short = [vec![0; 4], put(1, &[0; 6])].concat();
        assert_eq!(of(&short), "found 6 bytes of NFQA_PACKET_HDR, expected 7");
        let mut long = message(0x0300, &numbered(0));
        long.pop();
        let error = all(&long).unwrap_err().to_string();
        assert_eq!(error, format!("{stated} 32 bytes of a netlink message, expected 16 to 31"));
    }

    #[test]
    fn verdicts_are_those_of_the_kernel() {
        let mut bytes = Vec::new();
        decide(&mut bytes, 5, 263, Verdict::Accept);
        decide(&mut bytes, 5, 264, Verdict::Drop);
        decide(&mut bytes, 5, 265, Verdict::Replace(b"abcde"));
        // struct nfqnl_msg_verdict_hdr: __be32 verdict, __be32 id.
        let general = vec![0, 0, 0, 5];
        let of = |verdict, id| [general.clone(), put(2, &[0, 0, 0, verdict, 0, 0, 1, id])].concat();
        let payload = [of(1, 9), vec![9, 0, 10, 0], b"abcde\0\0\0".to_vec()].concat();
        let expected =
            [of(1, 7), of(0, 8), payload].map(|contents| request(0x0301, 1, &contents)).concat();
        if cfg!(target_endian = "little") {
            assert_eq!(bytes, expected);
        }
        assert_eq!(request(0x0301, 1, &of(1, 7)).len(), VERDICT);
    }

    fn request(kind: u16, flags: u16, contents: &[u8]) -> Vec<u8> {
        let mut bytes = message(kind, contents);
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes
    }

    #[test]
    fn a_queue_is_bound_and_left_by_one_message() {
        let attributes = [
            vec![0, 0, 0, 5],
            put(1, &[1, 0, 0, 0]),
            // struct nfqnl_msg_config_params is packed: __be32 copy_range, __u8 copy_mode.
            [&put(2, &[0, 0, 0, 128, 2])[..9], &[0; 3]].concat(),
            put(3, &[0, 0, 4, 0]),
            put(5, &[0, 0, 0, 1]),
            put(4, &[0, 0, 0, 5]),
        ];
        let expected = request(0x0302, 1 | 4, &attributes.concat());
        assert_eq!(bind(5, 128, 1_024, true), expected);
        let attributes = [vec![0, 0, 0, 5], put(1, &[2, 0, 0, 0])];
        assert_eq!(unbind(5), request(0x0302, 1, &attributes.concat()));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes, |_| {});
        }

        /// Correct but for some bytes, so that all of it is reached.
        #[test]
        fn no_changes_of_messages_make_it_panic(
            payload in prop::collection::vec(any::<u8>(), 0..40),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            end in any::<prop::sample::Index>(),
        ) {
            let packet = message(0x0300, &[numbered(1), put(10, &payload)].concat());
            let answer = message(2, &[0xfe, 0xff, 0xff, 0xff]);
            let mut bytes = [packet, answer].concat();
            for (at, value) in changes {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            bytes.truncate(end.index(bytes.len() + 1));
            let size = bytes.len();
            let _ = parse(&bytes, |message| if let Message::Held(held) = message {
                assert!(held.payload.len() < size && held.length as usize >= held.payload.len());
            });
        }
    }
}
