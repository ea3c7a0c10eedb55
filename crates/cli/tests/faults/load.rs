//! Traffic between a user and a provider: TCP each way, UDP, and probes.
//!
//! It goes on while nothing passes, and after it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::hosts::{Bed, USER};
use crate::network::PATIENCE;

const CHUNK: usize = 64 << 10;
const DATAGRAM: usize = 1_000;
const BETWEEN_DATAGRAMS: Duration = Duration::from_millis(2);
const BETWEEN_PROBES: Duration = Duration::from_millis(10);
const PROBE: usize = 100;
/// How often those who wait look whether it is over.
const LOOK: Duration = Duration::from_millis(100);

/// What runs until it is told to end.
pub(crate) struct Load {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    /// Bytes of TCP that came, down and up.
    pub(crate) bytes: [Arc<AtomicU64>; 2],
    trips: Arc<Mutex<Trips>>,
}

/// Probes that went to the provider and back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trips {
    pub(crate) sent: u64,
    /// Those that came back, in milliseconds.
    pub(crate) times: Vec<f64>,
}

impl Load {
    /// Begins, while a link carries; connections stay as they are from then on.
    pub(crate) fn begin(bed: &Bed, small_flows: bool) -> Load {
        let provider = bed.address();
        let listener = bed.provider.run(move || TcpListener::bind(SocketAddr::from((provider, 0))));
        let listener = listener.unwrap();
        let server = listener.local_addr().unwrap();
        let mut load = Load {
            over: Arc::default(),
            threads: Vec::new(),
            bytes: Default::default(),
            trips: Arc::default(),
        };
        for direction in 0..2 {
            let ours = bed.user.run(move || TcpStream::connect_timeout(&server, PATIENCE)).unwrap();
            let (theirs, _) = listener.accept().unwrap();
            let (from, to) = if direction == 0 { (theirs, ours) } else { (ours, theirs) };
            load.pump(from, to, direction);
        }
        load.datagrams(bed, provider);
        load.probes(bed, provider);
        if small_flows {
            load.small_flows(bed, listener);
        }
        load
    }

    fn begin_thread(&mut self, mut turn: impl FnMut() + Send + 'static) {
        let over = self.over.clone();
        self.threads.push(thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                turn();
            }
        }));
    }

    fn pump(&mut self, mut from: TcpStream, mut to: TcpStream, direction: usize) {
        from.set_write_timeout(Some(LOOK)).unwrap();
        to.set_read_timeout(Some(LOOK)).unwrap();
        // What cannot be written now is written later.
        self.begin_thread(move || drop(from.write(&[7; CHUNK])));
        let (count, mut buffer) = (self.bytes[direction].clone(), vec![0; CHUNK]);
        self.begin_thread(move || {
            let came = to.read(&mut buffer).unwrap_or(0);
            count.fetch_add(came as u64, Ordering::Relaxed);
        });
    }

    fn datagrams(&mut self, bed: &Bed, provider: [u8; 4]) {
        let ends = (
            bed.user.run(|| UdpSocket::bind(SocketAddr::from((USER, 0))).unwrap()),
            bed.provider.run(move || UdpSocket::bind(SocketAddr::from((provider, 0))).unwrap()),
        );
        let to = ends.0.local_addr().unwrap();
        ends.0.set_read_timeout(Some(LOOK)).unwrap();
        self.begin_thread(move || drop(ends.0.recv(&mut [0; DATAGRAM])));
        self.begin_thread(move || {
            let _ = ends.1.send_to(&[0; DATAGRAM], to);
            thread::sleep(BETWEEN_DATAGRAMS);
        });
    }

    fn probes(&mut self, bed: &Bed, provider: [u8; 4]) {
        let echo =
            bed.provider.run(move || UdpSocket::bind(SocketAddr::from((provider, 0))).unwrap());
        let to = echo.local_addr().unwrap();
        echo.set_read_timeout(Some(LOOK)).unwrap();
        self.begin_thread(move || {
            let mut buffer = [0; PROBE];
            if let Ok((length, from)) = echo.recv_from(&mut buffer) {
                let _ = echo.send_to(&buffer[..length], from);
            }
        });
        let socket = bed.user.run(|| UdpSocket::bind(SocketAddr::from((USER, 0))).unwrap());
        socket.connect(to).unwrap();
        socket.set_read_timeout(Some(LOOK)).unwrap();
        let (sender, begun) = (socket.try_clone().unwrap(), Instant::now());
        let trips = self.trips.clone();
        self.begin_thread(move || {
            let mut probe = [0; PROBE];
            probe[..8].copy_from_slice(&(begun.elapsed().as_nanos() as u64).to_ne_bytes());
            let _ = sender.send(&probe);
            trips.lock().unwrap().sent += 1;
            thread::sleep(BETWEEN_PROBES);
        });
        let trips = self.trips.clone();
        self.begin_thread(move || {
            let mut probe = [0; PROBE];
            if socket.recv(&mut probe).is_ok() {
                let sent = u64::from_ne_bytes(probe[..8].try_into().unwrap());
                let took = begun.elapsed().as_nanos() as u64 - sent;
                trips.lock().unwrap().times.push(took as f64 / 1e6);
            }
        });
    }

    /// One short connection after the other, each of another port.
    fn small_flows(&mut self, bed: &Bed, listener: TcpListener) {
        let server = listener.local_addr().unwrap();
        let over = self.over.clone();
        self.threads.push(thread::spawn(move || {
            for stream in listener.incoming() {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                let _ = stream.and_then(|mut stream| stream.write_all(&[7; 10_000]));
            }
        }));
        let (asked, asks) = std::sync::mpsc::channel::<()>();
        // Sockets are made in the user's network.
        let over = self.over.clone();
        let ended = bed.user.begin(move || {
            while !over.load(Ordering::Relaxed) {
                if let Ok(mut stream) = TcpStream::connect_timeout(&server, LOOK * 5) {
                    let _ = stream.set_read_timeout(Some(LOOK * 5));
                    let _ = stream.read_to_end(&mut Vec::new());
                }
                thread::sleep(Duration::from_millis(50));
            }
            // The last one lets the server look whether it is over.
            let _ = TcpStream::connect_timeout(&server, LOOK * 5);
            drop(asked);
        });
        self.threads.push(thread::spawn(move || {
            let _ = (asks.recv(), ended.recv());
        }));
    }

    /// Probes since the last call.
    pub(crate) fn trips(&self) -> Trips {
        std::mem::take(&mut *self.trips.lock().unwrap())
    }

    /// Ends it.
    pub(crate) fn end(self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}
