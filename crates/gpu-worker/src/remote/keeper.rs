//! One thread for each endpoint: it probes the endpoint while it is out of service, and looks in on it while it serves.
//!
//! A probe is a whole extraction of a clip of noise, so that no caller's query pays for finding out whether a server is
//! back. Queries of callers never pass through here, so a server that stalls holds up nothing but its own keeper.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use matcher_core::Embedding;

use crate::worker::probe_clip;

use super::address::Address;
use super::asker::{Asker, Reach};
use super::fault::Fault;
use super::fleet::{Duty, Fleet};
use super::http::Place;

/// Addresses of one name that are tried. More would take longer than the pauses between probes.
const SOCKETS_MAX: usize = 4;

/// How patient a keeper is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    pub(super) connect: Duration,
    pub(super) answer: Duration,
}

/// Starts the thread that looks after one endpoint until the fleet is closed.
pub(super) fn start(fleet: &Arc<Fleet>, index: usize, asker: Asker, patience: Patience) -> std::io::Result<()> {
    let fleet = Arc::clone(fleet);
    let thread = std::thread::Builder::new().name(format!("remote-{index}"));
    // It ends with the fleet and is not waited for: a look-up of a name can be neither hurried nor ended.
    thread.spawn(move || keep(&fleet, index, asker, patience)).map(drop)
}

fn keep(fleet: &Fleet, index: usize, asker: Asker, patience: Patience) {
    let Some(address) = fleet.addresses().get(index) else { return };
    let mut keeper = Keeper { address, asker, patience };
    while let Some(duty) = fleet.wait_for_duty(index) {
        match duty {
            Duty::Probe => fleet.probed(index, calm(|| keeper.probe())),
            Duty::Check(reach) => fleet.checked(index, calm(|| keeper.check(&reach))),
            Duty::Doubt(reach) => fleet.doubted(index, calm(|| keeper.doubt(&reach))),
        }
    }
}

/// A panic must not leave an endpoint without its keeper.
fn calm<T>(work: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(Fault::NotAnAnswer("reading it panicked")))
}

struct Keeper<'a> {
    address: &'a Address,
    asker: Asker,
    patience: Patience,
}

impl Keeper<'_> {
    /// Whether the server says that it is ready; where the protocol has no words for that, whether anybody listens there.
    fn check(&self, reach: &Reach) -> Result<(), Fault> {
        if !self.asker.can_check() {
            let connected = TcpStream::connect_timeout(&reach.place.socket, self.patience.connect);
            return connected.map(drop).map_err(|_| Fault::Unreachable);
        }
        self.asker.check(&reach.place, &self.address.path, Instant::now() + self.patience.answer)
    }

    fn probe(&mut self) -> Result<(Reach, Embedding), Fault> {
        let socket = self.socket().ok_or(Fault::Unreachable)?;
        let place = Place { socket, authority: self.address.authority() };
        let by = Instant::now() + self.patience.answer;
        self.asker.check(&place, &self.address.path, by)?;
        let reach = self.asker.reach(place, &self.address.path, by)?;
        let print = self.print(&reach, by)?;
        Ok((reach, print))
    }

    fn doubt(&mut self, reach: &Reach) -> Result<Embedding, Fault> {
        self.check(reach)?;
        self.print(reach, Instant::now() + self.patience.answer)
    }

    fn print(&mut self, reach: &Reach, by: Instant) -> Result<Embedding, Fault> {
        let clip = probe_clip();
        self.asker.prepare(&clip).map_err(|_| Fault::NotAnAnswer("the probe's clip cannot be encoded"))?;
        // Every server can use this clip.
        let vector = self.asker.ask(reach, (&clip, None), by).map_err(Fault::not_the_clips)?;
        Ok(Embedding::new(&vector)?)
    }

    /// The first address of the endpoint's name that somebody listens at.
    fn socket(&self) -> Option<SocketAddr> {
        let sockets = (self.address.host.as_str(), self.address.port).to_socket_addrs().ok()?;
        let listens = |socket: &SocketAddr| TcpStream::connect_timeout(socket, self.patience.connect).is_ok();
        sockets.take(SOCKETS_MAX).find(listens)
    }
}
