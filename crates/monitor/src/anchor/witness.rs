//! The witness anchor: a C2SP tlog-witness asked over HTTP to cosign the seal.
//!
//! Nothing secret is sent and nothing unsigned is kept, so plain HTTP is enough: who sits in
//! between can withhold an answer or raise a false alarm, but cannot make a cosignature.

use std::time::Duration;

use wardkeep_evidence::checkpoint::Checkpoint;
use wardkeep_evidence::merkle::TreeHash;
use wardkeep_evidence::note::{Algorithm, Note, Signature, VerifierKey};
use wardkeep_evidence::seal::LogPublic;

use super::http::{self, HttpAnswer, HttpError, HttpUrl};
use super::request::{self, ADD_CHECKPOINT, LATEST, LOG_HEADER, MAX_PROOF_LINES, SIZE_TYPE};
use super::{Anchor, AnchorError, Receipt, Submission, parse_decimal, shown};

const CLOCK_TOLERANCE_SECONDS: u64 = 300;
// The first may rest on an outdated size; the witness then tells the right one.
const ATTEMPTS: usize = 2;

/// A witness on the network.
#[derive(Debug, Clone)]
pub struct WitnessAnchor {
    name: String,
    url: HttpUrl,
    key: VerifierKey,
    last_known: u64,
    deadline: Duration,
}

impl WitnessAnchor {
    /// A witness at an `http` address, with the verifier key its owner gave out; `last_known` is
    /// the size it last acknowledged, or 0.
    pub fn new(
        name: &str,
        url: &str,
        verifier_key: &str,
        last_known: u64,
        deadline: Duration,
    ) -> Result<Self, AnchorError> {
        let key = VerifierKey::parse(verifier_key);
        let key = key.map_err(|error| AnchorError::refused(name, error))?;
        if key.algorithm() != Algorithm::CosignatureV1 {
            let reason = "its key is not a witness's; ask for the key `witness serve` prints";
            return Err(AnchorError::refused(name, reason));
        }
        let parsed = HttpUrl::parse(url);
        let url = parsed
            .map_err(|reason| AnchorError::refused(name, format!("`{}` {reason}", shown(url))))?;
        Ok(Self { name: name.to_owned(), url, key, last_known, deadline })
    }

    /// The head the witness last cosigned, with the signatures of the log and of the witness
    /// checked; `None` when it never saw the log, or does not give heads out.
    pub fn latest_note(&mut self, log: &LogPublic) -> Result<Option<Note>, AnchorError> {
        let path = format!("{LATEST}?origin={}", http::percent_encode(&log.origin()));
        let answer = self.ask("GET", &path, &[], b"")?;
        match answer.status {
            200 => {}
            404 => return Ok(None),
            status => return Err(self.unexpected(status, &answer, log)),
        }
        let text = str::from_utf8(&answer.body).unwrap_or_default();
        let note = Note::parse(text).map_err(|error| self.malformed(error))?;
        let checkpoint = Checkpoint::parse(&note.text).map_err(|error| self.malformed(error))?;
        if checkpoint.origin != log.origin() {
            return Err(self.malformed("it gave the head of another log"));
        }
        for key in [&self.key, &log.log_key()] {
            key.verify(&note).map_err(|error| self.malformed(error))?;
        }
        Ok(Some(note))
    }

    fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<HttpAnswer, AnchorError> {
        let request = self.url.request(method, path, headers, body);
        http::exchange(&self.url, &request, self.deadline).map_err(|error| match error {
            HttpError::Connection(_) => AnchorError::unreachable(&self.name, error),
            HttpError::Malformed(_) => self.malformed(error),
        })
    }

    fn add(&self, submission: &Submission<'_>, old: u64) -> Result<HttpAnswer, AnchorError> {
        let proof = self.proof(submission, old)?;
        let body = request::body(old, &proof, submission.note);
        let log = submission.log.to_string();
        let headers = [("Content-Type", "text/plain; charset=utf-8"), (LOG_HEADER, log.as_str())];
        self.ask("POST", ADD_CHECKPOINT, &headers, body.as_bytes())
    }

    fn proof(&self, submission: &Submission<'_>, old: u64) -> Result<Vec<TreeHash>, AnchorError> {
        if old == 0 || old == submission.checkpoint.size {
            return Ok(Vec::new());
        }
        let proof = (submission.consistency)(old).filter(|proof| proof.len() <= MAX_PROOF_LINES);
        proof.ok_or_else(|| {
            let reason = format!("the log gives no proof from size {old}; verify the log");
            AnchorError::format(&self.name, reason)
        })
    }

    /// Takes the witness's signature out of its answer, if it holds for this seal.
    fn receipt(
        &mut self,
        submission: &Submission<'_>,
        answer: &HttpAnswer,
        forgot: bool,
        now: u64,
    ) -> Result<Receipt, AnchorError> {
        let text = str::from_utf8(&answer.body).unwrap_or_default();
        let is_ours = |signature: &Signature| {
            signature.name == self.key.name() && signature.key_id == self.key.key_id()
        };
        let lines = text.lines().map(Signature::parse_line).filter_map(Result::ok);
        let signature = lines.into_iter().find(is_ours).ok_or_else(|| {
            let name = shown(self.key.name());
            self.malformed(format!("it did not sign as `{name}`; ask its owner for its key"))
        })?;
        let mut cosigned = submission.note.clone();
        cosigned.push(signature).map_err(|error| self.malformed(error))?;
        let verified = self.key.verify(&cosigned).map_err(|error| self.malformed(error))?;
        let at = verified.timestamp.unwrap_or(now);
        let mut detail = format!("cosigned by `{}`", shown(self.key.name()));
        if at.abs_diff(now) > CLOCK_TOLERANCE_SECONDS {
            let difference = at.abs_diff(now);
            detail.push_str(&format!("; its clock and ours differ by {difference} seconds"));
        }
        if forgot {
            detail.push_str("; it had forgotten entries it acknowledged before, ask its owner why");
        }
        self.last_known = submission.checkpoint.size;
        Ok(Receipt {
            anchor: self.name.clone(),
            size: submission.checkpoint.size,
            at,
            cosigned: Some(cosigned),
            detail,
        })
    }

    fn malformed(&self, reason: impl std::fmt::Display) -> AnchorError {
        AnchorError::format(&self.name, format!("the witness's answer is not usable: {reason}"))
    }

    fn unexpected(&self, status: u16, answer: &HttpAnswer, log: &LogPublic) -> AnchorError {
        let told = shown(&String::from_utf8_lossy(&answer.body));
        match status {
            400 => self.malformed(format!("it answers 400, `{told}`; update the older side")),
            401 | 403 | 404 => {
                let reason =
                    format!("it does not know this log ({status}); register `{log}` there");
                AnchorError::refused(&self.name, reason)
            }
            300..=399 => {
                let reason = format!("it answers {status}; give the address it redirects to");
                AnchorError::refused(&self.name, reason)
            }
            _ => AnchorError::unreachable(&self.name, format!("it answers {status}, `{told}`")),
        }
    }
}

impl Anchor for WitnessAnchor {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> &'static str {
        "witness"
    }

    fn put(&mut self, submission: &Submission<'_>, now: u64) -> Result<Receipt, AnchorError> {
        submission.check(&self.name)?;
        let ours = submission.checkpoint.size;
        let mut old = self.last_known.min(ours);
        let mut forgot = false;
        for _ in 0..ATTEMPTS {
            let answer = self.add(submission, old)?;
            let fork = |size| Err(AnchorError::Fork { anchor: self.name.clone(), size });
            match (answer.status, held_size(&answer)) {
                (200, _) => return self.receipt(submission, &answer, forgot, now),
                (409, Some(theirs)) if theirs > ours => {
                    return Err(AnchorError::Rollback { anchor: self.name.clone(), theirs, ours });
                }
                // It does not mind the old size, so it minds the root.
                (409, Some(theirs)) if theirs == ours && old == ours => return fork(ours),
                (409, None) if old == ours => return fork(ours),
                (409, Some(theirs)) if theirs != old => {
                    forgot = theirs < self.last_known.min(ours);
                    old = theirs;
                }
                (409, _) => return Err(self.malformed("it names no size in a conflict")),
                (422, _) if old > 0 => return fork(old),
                (422, _) => return Err(self.malformed("it refuses a proof from nothing")),
                (status, _) => return Err(self.unexpected(status, &answer, submission.log)),
            }
        }
        Err(AnchorError::unreachable(&self.name, "it is busy with other requests for this log"))
    }

    fn latest(&mut self, log: &LogPublic) -> Result<Option<u64>, AnchorError> {
        let note = self.latest_note(log)?;
        let head = note.and_then(|note| Checkpoint::parse(&note.text).ok());
        Ok(head.map(|head| head.size))
    }
}

/// The size a conflict names.
fn held_size(answer: &HttpAnswer) -> Option<u64> {
    let content_type = answer.content_type.as_deref()?;
    let bare_type = content_type.split(';').next().unwrap_or_default().trim();
    let text = str::from_utf8(&answer.body).ok()?.strip_suffix('\n')?;
    parse_decimal(text).filter(|_| bare_type.eq_ignore_ascii_case(SIZE_TYPE))
}
