//! Bodies that come compressed, although nobody asked for it.

use std::io::{self, Write as _};

use flate2::write::{GzDecoder, ZlibDecoder};
use hyper::header::{self, HeaderMap};

/// Bytes that are decoded at a time: what they become is looked at in between.
const SLICE: usize = 4096;

/// Decodes a body.
pub(super) enum Inflate {
    Plain,
    Gzip(Box<GzDecoder<Vec<u8>>>),
    Zlib(Box<ZlibDecoder<Vec<u8>>>),
}

impl Inflate {
    /// For a body with these headers; nothing where the encoding is not known.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(header::CONTENT_ENCODING).iter();
        let Some(value) = values.next() else { return Some(Self::Plain) };
        if values.next().is_some() {
            return None;
        }
        match value.to_str().ok()?.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Some(Self::Plain),
            "gzip" | "x-gzip" => Some(Self::Gzip(Box::new(GzDecoder::new(Vec::new())))),
            "deflate" => Some(Self::Zlib(Box::new(ZlibDecoder::new(Vec::new())))),
            _ => None,
        }
    }

    pub(super) fn is_plain(&self) -> bool {
        matches!(self, Self::Plain)
    }

    /// The bytes that these become; at most `most` of them, or an error.
    pub(super) fn feed(&mut self, bytes: &[u8], most: usize) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        if self.is_plain() {
            out.extend_from_slice(bytes);
        }
        for slice in bytes.chunks(SLICE) {
            match self {
                Self::Plain => {}
                Self::Gzip(decoder) => {
                    decoder.write_all(slice)?;
                    decoder.flush()?;
                    out.append(decoder.get_mut());
                }
                Self::Zlib(decoder) => {
                    decoder.write_all(slice)?;
                    decoder.flush()?;
                    out.append(decoder.get_mut());
                }
            }
            if out.len() > most {
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the body is too long"));
            }
        }
        Ok(out)
    }

    /// What is left at the end; an error where the end is missing.
    pub(super) fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            Self::Plain => Ok(Vec::new()),
            Self::Gzip(decoder) => decoder.finish(),
            Self::Zlib(decoder) => decoder.finish(),
        }
    }
}
