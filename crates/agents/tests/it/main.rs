//! Every adapter on events of our own making.

#[cfg(test)]
mod answers;
#[cfg(test)]
mod guarding;
#[cfg(test)]
mod installing;
#[cfg(test)]
mod malformed;
#[cfg(test)]
mod plugins;
#[cfg(test)]
mod reading;
#[cfg(test)]
mod shapes;
