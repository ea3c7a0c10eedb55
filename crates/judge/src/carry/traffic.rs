//! What is sent through the middle, and what comes out.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{UdpGroSegment, UdpGsoSegment};
use serde::Serialize;

use super::{Bed, NOBODY, PROVIDER, USER};
use crate::host::BedError;

/// A full IP packet, and what UDP puts of it.
const PACKET_BITS: f64 = 1_500.0 * 8.0;
const FULL: u16 = 1_472;
/// What fits into a super-packet.
const MOST_TOGETHER: usize = 44;
/// The smallest Ethernet frame, as much of it as UDP fills: 60 bytes without its checksum.
const SMALLEST: u16 = 18;
/// Frames that are sent with one call, as many as the kernel takes.
const AT_ONCE: usize = 64;
/// A probe, and the time between two.
const PROBE: usize = 100;
const BETWEEN_PROBES: Duration = Duration::from_millis(5);
/// What has not come after this is lost.
const LOST: Duration = Duration::from_millis(500);
/// A machine that is busy may leave a program without a core for so long.
const PATIENCE: Duration = Duration::from_secs(5);
/// Connections are made and windows opened in this time; then it counts.
const WARM_UP: Duration = Duration::from_millis(700);

/// Round trips of probes, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Delays {
    /// How many came back.
    pub count: usize,
    /// How many did not.
    pub lost: usize,
    /// Half of them took at most this long.
    pub p50_ms: f64,
    /// 95 of 100 did.
    pub p95_ms: f64,
    /// 99 of 100 did.
    pub p99_ms: f64,
    /// The mean change from one to the next (RFC 3550's jitter without its filter).
    pub jitter_ms: f64,
}

/// What is carried when more is offered than can be.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Flood {
    /// Frames of 64 bytes that were sent, each second.
    pub offered_pps: f64,
    /// Those that came.
    pub carried_pps: f64,
    /// Time of the link's threads on a core for each of them.
    pub cpu_ns_per_packet: Option<f64>,
    /// What one connection of TCP gets, of payload.
    pub tcp_bps: f64,
}

/// Sends full packets at a pace; returns the rates of IP packets that were sent and that the
/// user gets.
///
/// Packets that are due together leave as one super-packet, which the kernel hands on whole:
/// a program that makes each of them by itself cannot offer a gigabit on a core that it
/// shares with what it measures.
pub(super) fn flood_at(bed: &Bed, bps: f64, time: Duration) -> Result<[f64; 2], BedError> {
    let socket = bed.user.run(|| UdpSocket::bind((USER, 0)))?;
    let to = socket.local_addr()?;
    socket.set_read_timeout(Some(PATIENCE))?;
    setsockopt(&socket, UdpGroSegment, &true).map_err(io::Error::from)?;
    let sent = bed.provider.begin(move || -> io::Result<f64> {
        let socket = UdpSocket::bind((PROVIDER, 0))?;
        setsockopt(&socket, UdpGsoSegment, &i32::from(FULL))?;
        let payload = vec![0; usize::from(FULL) * MOST_TOGETHER];
        let (begun, mut count, mut sent) = (Instant::now(), 0, 0);
        while begun.elapsed() < time + WARM_UP {
            let due = (begun.elapsed().as_secs_f64() * bps / PACKET_BITS) as usize;
            while count < due {
                let together = (due - count).min(MOST_TOGETHER);
                // A full buffer of the sender is a packet that is not sent.
                sent += socket
                    .send_to(&payload[..usize::from(FULL) * together], to)
                    .unwrap_or_default();
                count += together;
            }
            thread::sleep(Duration::from_micros(200));
        }
        Ok(ip_bits(sent) / begun.elapsed().as_secs_f64())
    });
    let received = bed.user.run(move || -> io::Result<f64> {
        let mut buffer = vec![0; 1 << 16];
        socket.recv(&mut buffer)?;
        let begun = Instant::now();
        while begun.elapsed() < WARM_UP {
            socket.recv(&mut buffer)?;
        }
        let (begun, mut bytes) = (Instant::now(), 0);
        let mut last = begun;
        while last - begun < time - WARM_UP {
            bytes += socket.recv(&mut buffer)?;
            last = Instant::now();
        }
        Ok(ip_bits(bytes) / (last - begun).as_secs_f64())
    });
    let received = received?;
    Ok([sent.recv().expect("the sender answers")?, received])
}

/// Bits of the IP packets that have so many bytes of payload.
fn ip_bits(payload: usize) -> f64 {
    payload as f64 / f64::from(FULL) * PACKET_BITS
}

/// Sends the smallest frames as fast as can be; returns how many were sent and came.
///
/// A call makes many of them, which the kernel takes apart before they leave: a program that
/// makes each of them by itself is slower than what it measures.
pub(super) fn flood(bed: &Bed, time: Duration) -> Result<(f64, f64), BedError> {
    bed.provider.words("ethtool", "-K lan tx-udp-segmentation off")?;
    let before = bed.received()?;
    let sent = bed.provider.run(move || -> io::Result<u64> {
        let socket = UdpSocket::bind((PROVIDER, 0))?;
        setsockopt(&socket, UdpGsoSegment, &i32::from(SMALLEST))?;
        let payload = [0; SMALLEST as usize * AT_ONCE];
        let (begun, mut count) = (Instant::now(), 0);
        while begun.elapsed() < time {
            match socket.send_to(&payload, (NOBODY, 9)) {
                Ok(_) => count += AT_ONCE as u64,
                Err(error) if error.raw_os_error() == Some(nix::libc::ENOBUFS) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    })?;
    bed.provider.words("ethtool", "-K lan tx-udp-segmentation on")?;
    thread::sleep(Duration::from_millis(100));
    Ok((sent as f64, (bed.received()? - before) as f64))
}

/// Sends probes to the provider, which sends them back.
pub(super) fn probe(bed: &Bed, time: Duration) -> Result<Delays, BedError> {
    let echo = bed.provider.run(|| UdpSocket::bind((PROVIDER, 0)))?;
    let to = echo.local_addr()?;
    echo.set_read_timeout(Some(2 * LOST))?;
    let echoes = bed.provider.begin(move || {
        let mut buffer = [0; PROBE];
        // Until the last probe is long gone.
        while let Ok((length, from)) = echo.recv_from(&mut buffer) {
            let _ = echo.send_to(&buffer[..length], from);
        }
    });
    let trips = bed.user.run(move || -> io::Result<Vec<Option<f64>>> {
        let socket = UdpSocket::bind((USER, 0))?;
        socket.connect(to)?;
        let count = (time.as_secs_f64() / BETWEEN_PROBES.as_secs_f64()) as usize;
        let begun = Instant::now();
        let due = |number: usize| BETWEEN_PROBES * number as u32;
        let mut trips = vec![None; count];
        let mut sent = 0;
        let mut buffer = [0; PROBE];
        while begun.elapsed() < due(count) + LOST {
            if sent < count && begun.elapsed() >= due(sent) {
                buffer[..8].copy_from_slice(&(sent as u64).to_be_bytes());
                buffer[8..16].copy_from_slice(&(begun.elapsed().as_nanos() as u64).to_be_bytes());
                socket.send(&buffer)?;
                sent += 1;
            }
            let next = if sent < count { due(sent) } else { due(count) + LOST };
            let wait = next.saturating_sub(begun.elapsed()).max(Duration::from_micros(1));
            socket.set_read_timeout(Some(wait))?;
            match socket.recv(&mut buffer) {
                Ok(PROBE) => {
                    let number = |at| {
                        let bytes = buffer[at..at + 8].try_into().expect("eight bytes");
                        u64::from_be_bytes(bytes)
                    };
                    let trip = begun.elapsed().as_nanos() as u64 - number(8);
                    trips[number(0) as usize] = Some(trip as f64 / 1e6);
                }
                Ok(_) => {}
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(trips)
    })?;
    echoes.recv().expect("the echo ends");
    let lost = trips.iter().filter(|trip| trip.is_none()).count();
    let came: Vec<f64> = trips.into_iter().flatten().collect();
    let changes: Vec<f64> = came.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    let mut sorted = came.clone();
    sorted.sort_by(f64::total_cmp);
    let at = |part| crate::figures::quantile(&sorted, part);
    Ok(Delays {
        count: came.len(),
        lost,
        p50_ms: at(0.5),
        p95_ms: at(0.95),
        p99_ms: at(0.99),
        jitter_ms: changes.iter().sum::<f64>() / changes.len().max(1) as f64,
    })
}

/// Does something while the user downloads without end.
pub(super) fn beside_a_download<T>(
    bed: &Bed,
    time: Duration,
    job: impl FnOnce() -> Result<T, BedError>,
) -> Result<T, BedError> {
    let stop = Arc::new(AtomicBool::new(false));
    let until = stop.clone();
    let (server, address) = listen(bed)?;
    // On threads of their own: the hosts are busy with probes.
    let served = thread::spawn(move || -> io::Result<()> {
        let (mut stream, _) = server.accept()?;
        stream.set_write_timeout(Some(LOST))?;
        let bytes = vec![0; 1 << 16];
        while !until.load(Ordering::Relaxed) {
            match stream.write(&bytes) {
                Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
        }
        Ok(())
    });
    let mut stream = bed.user.run(move || TcpStream::connect(address))?;
    let read = thread::spawn(move || io::copy(&mut stream, &mut io::sink()));
    thread::sleep(WARM_UP.min(time));
    let result = job();
    stop.store(true, Ordering::Relaxed);
    let _ = served.join();
    let _ = read.join();
    result
}

/// What a single download gets, in bits of payload a second.
pub(super) fn download(bed: &Bed, time: Duration) -> Result<f64, BedError> {
    let (server, address) = listen(bed)?;
    let stop = Arc::new(AtomicBool::new(false));
    let until = stop.clone();
    let served = bed.provider.begin(move || -> io::Result<()> {
        let (mut stream, _) = server.accept()?;
        let bytes = vec![0; 1 << 20];
        while !until.load(Ordering::Relaxed) {
            stream.write_all(&bytes)?;
        }
        Ok(())
    });
    let (answer, answered) = mpsc::channel();
    let read = bed.user.begin(move || -> io::Result<()> {
        let mut stream = TcpStream::connect(address)?;
        let mut buffer = vec![0; 1 << 20];
        let begun = Instant::now();
        let mut before = 0;
        while begun.elapsed() < WARM_UP {
            before += stream.read(&mut buffer)?;
        }
        if before == 0 {
            return Err(ErrorKind::TimedOut.into());
        }
        let (begun, mut bytes) = (Instant::now(), 0);
        while begun.elapsed() < time {
            bytes += stream.read(&mut buffer)?;
        }
        let _ = answer.send(bytes as f64 * 8.0 / begun.elapsed().as_secs_f64());
        stop.store(true, Ordering::Relaxed);
        while stream.read(&mut buffer)? > 0 {}
        Ok(())
    });
    read.recv().expect("the reader answers")?;
    served.recv().expect("the server answers")?;
    Ok(answered.recv().expect("the reader has said it"))
}

fn listen(bed: &Bed) -> io::Result<(TcpListener, std::net::SocketAddr)> {
    let server = bed.provider.run(|| TcpListener::bind((PROVIDER, 0)))?;
    let address = server.local_addr()?;
    Ok((server, address))
}
