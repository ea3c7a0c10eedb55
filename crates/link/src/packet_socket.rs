//! An interface, as a packet socket of Linux (packet(7)).
//!
//! The socket takes every frame that the interface receives, with the header of
//! [`offload`](crate::offload) in front, and none that leaves it: otherwise a link would
//! hear itself. Frames come and go in batches, one system call for each. The calls are
//! `unsafe`: the kernel's structures hold pointers into buffers, which are all borrowed
//! from [`Arrivals`] or from the caller for as long as a call takes.
//!
//! The interface is made promiscuous by the socket and stays so as long as the socket is
//! open. So whatever ends the process leaves the interface as it was.

#![expect(unsafe_code, reason = "packet sockets have no safe interface with batches")]

use std::ffi::{CString, c_int, c_void};
use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use crate::frames::LARGE;
use crate::offload::{HEADER_LENGTH, Offload};

/// Frames of a batch, either way.
pub(crate) const BATCH: usize = 32;
/// What the kernel may hold for the socket: a tenth of a second at a gigabit.
const SOCKET_BUFFER: c_int = 16 << 20;
/// A VLAN tag.
const TAG: usize = 4;
/// Two addresses of Ethernet.
const ADDRESSES: usize = 12;
/// Room for what the kernel says beside a frame: a header and `tpacket_auxdata`.
const CONTROL: usize = 64;

/// An interface that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is none of this name.
    #[error("found no interface '{0}', expected one that 'ip link' lists")]
    NoInterface(String),
    /// It carries something else.
    #[error("'{0}' is no Ethernet interface: a link stands between two of those")]
    NotEthernet(String),
    /// The right to do so is missing.
    #[error("'{0}': packet sockets take the capability CAP_NET_RAW: start it as root")]
    NotPermitted(String),
    /// The kernel refuses.
    #[error("'{interface}': {reason}")]
    Io {
        /// The interface.
        interface: String,
        /// Why.
        reason: io::Error,
    },
}

/// An open interface.
#[derive(Debug)]
pub(crate) struct PacketSocket {
    socket: OwnedFd,
    index: u32,
    name: CString,
}

impl PacketSocket {
    pub(crate) fn open(interface: &str) -> Result<PacketSocket, OpenError> {
        let (index, name) = index(interface)?;
        let opened = PacketSocket::with_index(index, name);
        opened.map_err(|reason| match reason.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => OpenError::NotPermitted(interface.into()),
            Some(libc::EPROTONOSUPPORT) => OpenError::NotEthernet(interface.into()),
            _ => OpenError::Io { interface: interface.into(), reason },
        })
    }

    fn with_index(index: u32, name: CString) -> io::Result<PacketSocket> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers are passed.
        let descriptor = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        let descriptor = checked(descriptor)?;
        // SAFETY: the descriptor is new, and nobody else closes it.
        let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
        let socket = PacketSocket { socket, index, name };
        let one: c_int = 1;
        for option in [libc::PACKET_IGNORE_OUTGOING, libc::PACKET_VNET_HDR, libc::PACKET_AUXDATA] {
            socket.set(libc::SOL_PACKET, option, &one)?;
        }
        for (forced, asked) in
            [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)]
        {
            // Without CAP_NET_ADMIN as much as the system permits.
            if socket.set(libc::SOL_SOCKET, forced, &SOCKET_BUFFER).is_err() {
                socket.set(libc::SOL_SOCKET, asked, &SOCKET_BUFFER)?;
            }
        }
        socket.bind()?;
        let membership = libc::packet_mreq {
            mr_ifindex: index.cast_signed(),
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        socket.set(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)?;
        Ok(socket)
    }

    fn set<T>(&self, level: c_int, option: c_int, value: &T) -> io::Result<()> {
        let length = size_of::<T>() as libc::socklen_t;
        let value = ptr::from_ref(value).cast::<c_void>();
        let socket = self.socket.as_raw_fd();
        // SAFETY: `value` points to `length` bytes that live until the call returns.
        checked(unsafe { libc::setsockopt(socket, level, option, value, length) }).map(drop)
    }

    fn bind(&self) -> io::Result<()> {
        let every_protocol = (libc::ETH_P_ALL as u16).to_be();
        let mut address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: every_protocol,
            sll_ifindex: self.index.cast_signed(),
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        let mut length = size_of_val(&address) as libc::socklen_t;
        let socket = self.socket.as_raw_fd();
        let at = ptr::from_mut(&mut address).cast::<libc::sockaddr>();
        // SAFETY: `at` points to an address of `length` bytes.
        checked(unsafe { libc::bind(socket, at, length) })?;
        // SAFETY: the kernel writes at most `length` bytes to `at`.
        checked(unsafe { libc::getsockname(socket, at, &raw mut length) })?;
        match address.sll_hatype {
            libc::ARPHRD_ETHER => Ok(()),
            _ => Err(io::Error::from_raw_os_error(libc::EPROTONOSUPPORT)),
        }
    }

    /// Whether the interface is still there, under its name.
    pub(crate) fn is_there(&self) -> bool {
        // SAFETY: `name` is a string that ends with zero and outlives the call.
        unsafe { libc::if_nametoindex(self.name.as_ptr()) == self.index }
    }

    pub(crate) fn name(&self) -> String {
        self.name.to_string_lossy().into_owned()
    }

    /// Frames that the kernel lost since the last call, because nobody took them in time.
    pub(crate) fn missed(&self) -> io::Result<u64> {
        let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = size_of_val(&statistics) as libc::socklen_t;
        let at = ptr::from_mut(&mut statistics).cast::<c_void>();
        let (socket, level) = (self.socket.as_raw_fd(), libc::SOL_PACKET);
        let option = libc::PACKET_STATISTICS;
        // SAFETY: the kernel writes at most `length` bytes to `at`.
        checked(unsafe { libc::getsockopt(socket, level, option, at, &raw mut length) })?;
        Ok(statistics.tp_drops.into())
    }

    /// Takes up to [`BATCH`] frames that wait; `WouldBlock` if there are none.
    pub(crate) fn receive(&self, arrivals: &mut Arrivals) -> io::Result<usize> {
        let mut parts = [const { MaybeUninit::<libc::iovec>::uninit() }; BATCH];
        let mut messages = no_messages();
        let rooms = arrivals.memory.chunks_exact_mut(ROOM).zip(arrivals.control.iter_mut());
        for (((room, control), part), message) in rooms.zip(&mut parts).zip(&mut messages) {
            let room = &mut room[TAG..];
            let base = room.as_mut_ptr().cast::<c_void>();
            part.write(libc::iovec { iov_base: base, iov_len: room.len() });
            message.msg_hdr.msg_iov = part.as_mut_ptr();
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
            message.msg_hdr.msg_controllen = CONTROL as _;
        }
        arrivals.count = 0;
        let socket = self.socket.as_raw_fd();
        let (at, count) = (messages.as_mut_ptr(), BATCH as libc::c_uint);
        // SAFETY: `count` messages point to memory of `arrivals`, which is borrowed until the
        // call returns, and no timeout is given.
        let received =
            unsafe { libc::recvmmsg(socket, at, count, libc::MSG_DONTWAIT as _, ptr::null_mut()) };
        arrivals.count = usize::try_from(checked(received)?).unwrap_or(0);
        for (facts, message) in arrivals.facts.iter_mut().zip(&messages).take(arrivals.count) {
            let header = &message.msg_hdr;
            *facts = Facts {
                length: message.msg_len as usize,
                said: CONTROL.min(header.msg_controllen as _),
                is_cut: header.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0,
            };
        }
        Ok(arrivals.count)
    }

    /// Sends frames, each behind its header, as many as can be; returns their number.
    ///
    /// # Errors
    /// The first frame could not be sent; `WouldBlock`: not now.
    pub(crate) fn send<'a>(&self, frames: impl Iterator<Item = &'a [u8]>) -> io::Result<usize> {
        let mut parts = [const { MaybeUninit::<libc::iovec>::uninit() }; BATCH];
        let mut count = 0;
        for (part, frame) in parts.iter_mut().zip(frames) {
            let base = frame.as_ptr().cast_mut().cast::<c_void>();
            part.write(libc::iovec { iov_base: base, iov_len: frame.len() });
            count += 1;
        }
        let mut messages = no_messages();
        for (message, part) in messages.iter_mut().zip(&mut parts).take(count) {
            message.msg_hdr.msg_iov = part.as_mut_ptr();
            message.msg_hdr.msg_iovlen = 1;
        }
        let socket = self.socket.as_raw_fd();
        let (at, flags) = (messages.as_mut_ptr(), libc::MSG_DONTWAIT as _);
        // SAFETY: `count` messages point to as many parts, and these to frames that live
        // until the call returns, which only reads them.
        let sent = unsafe { libc::sendmmsg(socket, at, count as libc::c_uint, flags) };
        checked(sent).map(|sent| usize::try_from(sent).unwrap_or(0))
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The number by which the kernel knows an interface, and its name as the kernel takes it.
pub(crate) fn index(interface: &str) -> Result<(u32, CString), OpenError> {
    let none = || OpenError::NoInterface(interface.into());
    let name = CString::new(interface).map_err(|_| none())?;
    // SAFETY: `name` is a string that ends with zero and outlives the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(none()),
        index => Ok((index, name)),
    }
}

fn checked(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn no_messages() -> [libc::mmsghdr; BATCH] {
    // SAFETY: a message of zeros is one without address, buffers and control data.
    unsafe { mem::zeroed() }
}

/// Room for a batch of frames.
pub(crate) struct Arrivals {
    /// For each frame a tag that may have to be put in, its header, and the frame.
    memory: Box<[u8]>,
    control: Box<[Control; BATCH]>,
    facts: [Facts; BATCH],
    count: usize,
}

/// What the kernel says beside a frame, aligned as its headers are.
#[repr(C, align(8))]
struct Control([u8; CONTROL]);

/// What the kernel says of a frame.
#[derive(Clone, Copy, Default)]
struct Facts {
    /// Bytes of header and frame.
    length: usize,
    /// Bytes of [`Control`].
    said: usize,
    /// It was larger than its room.
    is_cut: bool,
}

/// A frame that has arrived.
#[derive(Debug, PartialEq)]
pub(crate) enum Arrival<'a> {
    /// With its tag, if it has one.
    Frame(Offload, &'a [u8]),
    /// Larger than any buffer, or of a kind that is not known.
    Unreadable,
}

/// The size of a frame's part of the memory.
const ROOM: usize = TAG + LARGE;

impl Arrivals {
    pub(crate) fn new() -> Arrivals {
        Arrivals {
            memory: vec![0; BATCH * ROOM].into_boxed_slice(),
            control: Box::new([const { Control([0; CONTROL]) }; BATCH]),
            facts: [Facts::default(); BATCH],
            count: 0,
        }
    }

    /// The frames of the last batch, in the order in which they came.
    pub(crate) fn for_each(&mut self, mut take: impl FnMut(Arrival<'_>)) {
        let rooms = self.memory.chunks_exact_mut(ROOM).zip(self.control.iter());
        for ((room, control), facts) in rooms.zip(&self.facts).take(self.count) {
            take(match facts.is_cut {
                true => Arrival::Unreadable,
                false => arrival(room, facts.length, tag(&control.0[..facts.said])),
            });
        }
    }
}

/// The frame in its part of the memory, behind room for a tag and the header; `length`
/// counts the header.
fn arrival(room: &mut [u8], length: usize, tag: Option<[u8; TAG]>) -> Arrival<'_> {
    let Some((header, _)) = room[TAG..].split_first_chunk::<HEADER_LENGTH>() else {
        return Arrival::Unreadable;
    };
    let Some(offload) = Offload::read(*header) else { return Arrival::Unreadable };
    let start = TAG + HEADER_LENGTH;
    let end = TAG + length;
    match tag {
        Some(tag) if length >= HEADER_LENGTH + ADDRESSES => {
            room.copy_within(start..start + ADDRESSES, start - TAG);
            room[start - TAG + ADDRESSES..start + ADDRESSES].copy_from_slice(&tag);
            Arrival::Frame(offload.moved(TAG as u16), &room[start - TAG..end])
        }
        _ => Arrival::Frame(offload, &room[start..end.max(start)]),
    }
}

/// The VLAN tag that the kernel has taken out of a frame, from what it says beside it.
fn tag(control: &[u8]) -> Option<[u8; TAG]> {
    const HEADER: usize = size_of::<libc::cmsghdr>();
    const STATUS: usize = mem::offset_of!(libc::tpacket_auxdata, tp_status);
    const TCI: usize = mem::offset_of!(libc::tpacket_auxdata, tp_vlan_tci);
    const TPID: usize = mem::offset_of!(libc::tpacket_auxdata, tp_vlan_tpid);
    const LEVEL: usize = mem::offset_of!(libc::cmsghdr, cmsg_level);
    const TYPE: usize = mem::offset_of!(libc::cmsghdr, cmsg_type);
    let word = |at: usize| {
        control.get(at..at + 4).map(|it| u32::from_ne_bytes([it[0], it[1], it[2], it[3]]))
    };
    let half = |at: usize| control.get(at..at + 2).map(|it| u16::from_ne_bytes([it[0], it[1]]));
    // There is no other message: only one kind was asked for.
    let is_ours =
        word(LEVEL)? == libc::SOL_PACKET as u32 && word(TYPE)? == libc::PACKET_AUXDATA as u32;
    let status = word(HEADER + STATUS)?;
    if !is_ours || status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let kind = match status & libc::TP_STATUS_VLAN_TPID_VALID {
        0 => libc::ETH_P_8021Q as u16,
        _ => half(HEADER + TPID)?,
    };
    let [kind, tci] = [kind, half(HEADER + TCI)?].map(u16::to_be_bytes);
    Some([kind[0], kind[1], tci[0], tci[1]])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel says beside a frame.
    fn said(status: u32, tci: u16, tpid: u16) -> Vec<u8> {
        let header = size_of::<libc::cmsghdr>();
        let mut control = vec![0; header + size_of::<libc::tpacket_auxdata>()];
        let mut put =
            |at: usize, bytes: &[u8]| control[at..at + bytes.len()].copy_from_slice(bytes);
        put(mem::offset_of!(libc::cmsghdr, cmsg_level), &libc::SOL_PACKET.to_ne_bytes());
        put(mem::offset_of!(libc::cmsghdr, cmsg_type), &libc::PACKET_AUXDATA.to_ne_bytes());
        let at = |field: usize| header + field;
        put(at(mem::offset_of!(libc::tpacket_auxdata, tp_status)), &status.to_ne_bytes());
        put(at(mem::offset_of!(libc::tpacket_auxdata, tp_vlan_tci)), &tci.to_ne_bytes());
        put(at(mem::offset_of!(libc::tpacket_auxdata, tp_vlan_tpid)), &tpid.to_ne_bytes());
        control
    }

    #[test]
    fn a_tag_that_the_kernel_took_out_is_put_back() {
        let valid = libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID;
        assert_eq!(tag(&said(valid, 0x2064, 0x88a8)), Some([0x88, 0xa8, 0x20, 0x64]));
        let untyped = said(libc::TP_STATUS_VLAN_VALID, 5, 0);
        assert_eq!(tag(&untyped), Some([0x81, 0, 0, 5]));
        assert_eq!(tag(&said(0, 5, 0x8100)), None);
        assert_eq!(tag(&untyped[..untyped.len() - 5]), None);
        assert_eq!(tag(&[]), None);

        let frame: Vec<u8> = (1..=60).collect();
        let mut room = [vec![0; TAG + HEADER_LENGTH], frame.clone(), vec![0; 100]].concat();
        let tagged = [&frame[..12], &[0x81, 0, 0, 5], &frame[12..]].concat();
        let length = HEADER_LENGTH + frame.len();
        let mut copy = room.clone();
        let found = arrival(&mut copy, length, Some([0x81, 0, 0, 5]));
        assert_eq!(found, Arrival::Frame(Offload::default(), &tagged));
        let found = arrival(&mut room, length, None);
        assert_eq!(found, Arrival::Frame(Offload::default(), &frame));
    }

    #[test]
    fn an_interface_that_is_not_there_is_named() {
        let error = PacketSocket::open("no-such-one").unwrap_err();
        assert!(error.to_string().starts_with("found no interface 'no-such-one'"), "{error}");
        assert!(matches!(PacketSocket::open("a\0b"), Err(OpenError::NoInterface(_))));
    }
}
