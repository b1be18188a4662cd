//! From a host name to addresses, asked once and remembered.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use ttft_kernel::mono_now;
use ttft_model::{ErrorClass, Nanos, Resolve};

use crate::{Target, WireError};

/// Addresses of names. The system's resolver is asked once for each name, so that later connections do not measure
/// it again.
#[derive(Debug, Clone, Default)]
pub struct Resolver {
    overrides: Rc<[Resolve]>,
    known: Rc<RefCell<Vec<Known>>>,
}

/// Host, port and what they resolved to.
type Known = (String, u16, Rc<[SocketAddr]>);

impl Resolver {
    /// A resolver that knows some answers already.
    pub fn new(overrides: &[Resolve]) -> Self {
        Self { overrides: overrides.into(), known: Rc::default() }
    }

    /// The target's addresses, and when the resolver answered if it was asked.
    pub(crate) async fn lookup(
        &self,
        target: &Target,
    ) -> Result<(Rc<[SocketAddr]>, Option<Nanos>), WireError> {
        if let Some(addr) = target.literal {
            return Ok((Rc::new([SocketAddr::new(addr, target.port)]), None));
        }
        // Names know no case, and the target's has been made small.
        let is_it =
            |known: &&Resolve| known.host.eq_ignore_ascii_case(&target.host) && known.port == target.port;
        let given = self.overrides.iter().find(is_it);
        if let Some(given) = given {
            return Ok((Rc::new([SocketAddr::new(given.addr, target.port)]), None));
        }
        if let Some(found) = self.remembered(target) {
            return Ok((found, None));
        }
        let fail = |why: &dyn std::fmt::Display| {
            WireError::new(ErrorClass::Dns, format!("cannot resolve `{}`: {why}", target.host))
        };
        let found = tokio::net::lookup_host((target.host.as_str(), target.port)).await;
        let done = mono_now();
        let addresses: Rc<[SocketAddr]> = found.map_err(|e| fail(&e))?.collect();
        if addresses.is_empty() {
            return Err(fail(&"no address"));
        }
        self.known.borrow_mut().push((target.host.clone(), target.port, addresses.clone()));
        Ok((addresses, Some(done)))
    }

    /// That address answered when others did not: later connections try it first.
    pub(crate) fn prefer(&self, target: &Target, address: SocketAddr) {
        for (host, port, addresses) in self.known.borrow_mut().iter_mut() {
            if *host == target.host && *port == target.port {
                let others = addresses.iter().copied().filter(|other| *other != address);
                *addresses = std::iter::once(address).chain(others).collect();
            }
        }
    }

    fn remembered(&self, target: &Target) -> Option<Rc<[SocketAddr]>> {
        let known = self.known.borrow();
        let found = known.iter().find(|(host, port, _)| *host == target.host && *port == target.port);
        found.map(|(_, _, addresses)| addresses.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_that_answered_comes_first() {
        let target = Target::parse("http://gateway.example:8000/").unwrap();
        let [a, b, c] = [1, 2, 3].map(|last| SocketAddr::from(([192, 0, 2, last], 8_000)));
        let resolver = Resolver::default();
        resolver.known.borrow_mut().push((target.host.clone(), target.port, [a, b, c].into()));
        resolver.prefer(&target, b);
        assert_eq!(resolver.remembered(&target).unwrap()[..], [b, a, c]);
        resolver.prefer(&Target { port: 1, ..target.clone() }, c);
        assert_eq!(resolver.remembered(&target).unwrap()[..], [b, a, c]);
    }
}
