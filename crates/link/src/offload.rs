//! What Linux leaves to be done on a frame: the header that packet sockets put in front.
//!
//! A frame of a program on this machine, or one that the kernel has merged from several
//! (GRO), may be a *super-packet* of up to 64 kB that some card will cut, and its checksum
//! may be one that some card will complete. A socket with `PACKET_VNET_HDR` says so in the
//! ten bytes of `struct virtio_net_hdr`, in the byte order of the machine, and takes the
//! same ten bytes with each frame that is to be sent.

/// The length of the header.
pub const HEADER_LENGTH: usize = 10;

const NEEDS_CHECKSUM: u8 = 1;
/// The bit that says that CWR is set in the first segment only.
const GSO_ECN: u8 = 0x80;

/// The header, as values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// The checksum that has to be completed.
    pub checksum: Option<PartialChecksum>,
    /// How the super-packet has to be cut.
    pub cut: Option<Cut>,
    /// The length of the headers in front of what is cut, as far as the kernel says it.
    pub headers: u16,
}

/// A checksum that so far covers the pseudo header only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialChecksum {
    /// Where in the frame begins what it covers.
    pub start: u16,
    /// Where it stands, from there.
    pub offset: u16,
}

/// What a super-packet is to become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The kind of its segments.
    pub kind: CutKind,
    /// Payload of each of them; the last one may have less.
    pub size: u16,
    /// Only the first segment has CWR (RFC 3168 section 6.1.2).
    pub congestion_window_reduced_once: bool,
}

/// Kinds of super-packets, by their numbers in the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CutKind {
    /// TCP over IPv4.
    Tcp4 = 1,
    /// A UDP datagram that becomes fragments.
    Fragments = 3,
    /// TCP over IPv6.
    Tcp6 = 4,
    /// UDP datagrams of equal size.
    Udp = 5,
}

impl Offload {
    /// Reads the header; `None` for a kind of super-packet that is not known.
    #[must_use]
    pub fn read(header: [u8; HEADER_LENGTH]) -> Option<Offload> {
        let [flags, kind, rest @ ..] = header;
        let word = |at: usize| u16::from_ne_bytes([rest[at], rest[at + 1]]);
        let checksum = (flags & NEEDS_CHECKSUM != 0)
            .then(|| PartialChecksum { start: word(4), offset: word(6) });
        let cut = match kind & !GSO_ECN {
            0 => None,
            number => Some(Cut {
                kind: CutKind::numbered(number)?,
                size: word(2),
                congestion_window_reduced_once: kind & GSO_ECN != 0,
            }),
        };
        Some(Offload { checksum, cut, headers: word(0) })
    }

    /// The header.
    #[must_use]
    pub fn write(&self) -> [u8; HEADER_LENGTH] {
        let mut header = [0; HEADER_LENGTH];
        header[2..4].copy_from_slice(&self.headers.to_ne_bytes());
        if let Some(cut) = self.cut {
            let ecn = if cut.congestion_window_reduced_once { GSO_ECN } else { 0 };
            header[1] = cut.kind as u8 | ecn;
            header[4..6].copy_from_slice(&cut.size.to_ne_bytes());
        }
        if let Some(checksum) = self.checksum {
            header[0] = NEEDS_CHECKSUM;
            header[6..8].copy_from_slice(&checksum.start.to_ne_bytes());
            header[8..].copy_from_slice(&checksum.offset.to_ne_bytes());
        }
        header
    }

    /// The header of the same frame with `more` bytes inserted in front of what it speaks of.
    #[must_use]
    pub fn moved(self, more: u16) -> Offload {
        let moved = |at: u16| at.saturating_add(more);
        Offload {
            checksum: self.checksum.map(|it| PartialChecksum { start: moved(it.start), ..it }),
            headers: if self.headers == 0 { 0 } else { moved(self.headers) },
            ..self
        }
    }
}

impl CutKind {
    fn numbered(number: u8) -> Option<CutKind> {
        [CutKind::Tcp4, CutKind::Fragments, CutKind::Tcp6, CutKind::Udp]
            .into_iter()
            .find(|kind| *kind as u8 == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the kernel writes a super-packet of TCP over IPv4 on a machine of this byte order.
    fn of_the_kernel() -> [u8; HEADER_LENGTH] {
        let words = [66_u16, 1448, 34, 16].map(u16::to_ne_bytes).concat();
        let mut header = [NEEDS_CHECKSUM, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        header[2..].copy_from_slice(&words);
        header
    }

    #[test]
    fn a_header_is_written_as_it_was_read() {
        let offload = Offload::read(of_the_kernel()).unwrap();
        assert_eq!(offload.checksum, Some(PartialChecksum { start: 34, offset: 16 }));
        let cut = Cut { kind: CutKind::Tcp4, size: 1448, congestion_window_reduced_once: false };
        assert_eq!((offload.cut, offload.headers), (Some(cut), 66));
        assert_eq!(offload.write(), of_the_kernel());
        assert_eq!(Offload::read([0; HEADER_LENGTH]), Some(Offload::default()));
    }

    #[test]
    fn the_bit_of_ecn_is_kept_and_unknown_kinds_are_not_read() {
        let mut header = of_the_kernel();
        header[1] |= GSO_ECN;
        assert_eq!(Offload::read(header).unwrap().write(), header);
        header[1] = 7;
        assert_eq!(Offload::read(header), None);
    }

    #[test]
    fn a_tag_in_front_moves_what_the_header_speaks_of() {
        let moved = Offload::read(of_the_kernel()).unwrap().moved(4);
        assert_eq!(moved.checksum, Some(PartialChecksum { start: 38, offset: 16 }));
        assert_eq!((moved.headers, moved.cut.unwrap().size), (70, 1448));
    }
}
