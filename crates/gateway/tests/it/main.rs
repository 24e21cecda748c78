//! Integration tests of the gateway crate, one binary.

#[cfg(test)]
mod again;
#[cfg(test)]
mod asking;
#[cfg(test)]
mod attacks;
#[cfg(test)]
mod carried;
#[cfg(test)]
#[cfg(feature = "notify")]
mod desktop;
#[cfg(test)]
mod hellos;
#[cfg(test)]
mod hostile;
#[cfg(test)]
#[cfg(feature = "inspect")]
mod inspected;
#[cfg(test)]
mod lab;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod lookups;
#[cfg(test)]
mod many;
#[cfg(test)]
mod methods;
#[cfg(test)]
mod models;
#[cfg(test)]
mod models_asked;
#[cfg(test)]
mod models_hostile;
#[cfg(test)]
#[cfg(feature = "monitor")]
mod monitored;
#[cfg(test)]
#[cfg(feature = "notify")]
mod notify;
#[cfg(test)]
mod otlp;
#[cfg(test)]
mod outcomes;
#[cfg(test)]
mod parsers;
#[cfg(test)]
mod replies;
#[cfg(test)]
mod replies_hostile;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod slow;
#[cfg(test)]
mod tunnels;
