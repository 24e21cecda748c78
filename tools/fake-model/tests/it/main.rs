//! Each wire over a real socket: a tool call, then the last text, and what the log says of both.

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod client;
#[cfg(test)]
mod wires;
