//! A request passed on, and the answer to it passed back.

use std::sync::Arc;

#[cfg(feature = "inspect")]
use tokio::time::timeout;

use super::admit::{Passage, Shared};
use super::again::stays_open;
use super::body::Body;
use super::budget::Meter;
use super::connection::LAST;
use super::decider::{Denial, Ended};
use super::head::{Answer, Framing, Head, MAX_HEAD};
use super::host::Target;
use super::http::{Next, SHOWN, refusal, write_header};
use super::passing::Passing;
use super::stream::Stream;
use super::tunnel::{Cut, Motion, carry_both};
use super::websocket;

/// A request on its way, and the answer to it.
pub(super) struct Exchange<'a> {
    pub(super) shared: &'a Shared,
    pub(super) client: &'a Stream,
    pub(super) head: &'a Head,
    pub(super) chunked: bool,
    pub(super) meter: Meter,
    pub(super) motion: Arc<Motion>,
    /// Whose connection may be used again.
    pub(super) again: Option<Target>,
    /// The name that the host's TLS has to answer for.
    #[cfg(feature = "inspect")]
    pub(super) inspected: Option<String>,
}

/// How an answer ended.
enum Answered {
    /// As it said it would.
    Whole {
        /// Whether the host's connection is as it was before.
        open: bool,
    },
    /// With the connection.
    Closed,
    /// The connection has become a tunnel; what has come of it already.
    Upgraded(Vec<u8>),
}

impl Exchange<'_> {
    #[expect(clippy::too_many_arguments, reason = "what a request is made of")]
    pub(super) async fn run(
        &mut self,
        mut passage: Passage,
        port: u16,
        out: Vec<u8>,
        first: Vec<u8>,
        body: Body,
        passing: Option<Passing>,
        bytes: &mut Vec<u8>,
    ) -> Next {
        let reached = match self.ask_again(&mut passage, &out).await {
            Some(reached) => Ok(reached),
            None => match self.dial(&mut passage, port).await {
                Ok(host) => {
                    let ended = self.exchange(&host, out, first, body, passing, bytes).await;
                    Ok((host, ended))
                }
                Err(why) => Err(why),
            },
        };
        let (host, ended) = match reached {
            Ok(reached) => reached,
            Err(why) => {
                let denial = Denial::new("egress-unreachable", why.clone());
                self.client.finish_with(&refusal(502, &denial), LAST).await;
                passage.end(Ended::Failed(why));
                return Next::Ends;
            }
        };
        let (ended, next) = match ended {
            Ok(Answered::Whole { open }) => {
                if let (true, Some(target), Some(address)) =
                    (open, self.again.take(), passage.address)
                {
                    self.shared.again.keep(target, address, host);
                }
                let next = if self.head.keeps_alive() { Next::Goes } else { Next::Ends };
                (Ended::Done, next)
            }
            Ok(Answered::Closed) => (Ended::Done, Next::Ends),
            Ok(Answered::Upgraded(begun)) => (self.upgraded(&host, begun, bytes).await, Next::Ends),
            Err(cut) => {
                if self.motion.status().is_none() {
                    let answer = match &cut {
                        Cut::Denied(denial) if denial.rule == "egress-upload" => {
                            refusal(413, denial)
                        }
                        Cut::Denied(denial) => refusal(403, denial),
                        Cut::Broken(why) => {
                            refusal(502, &Denial::new("egress-unreachable", why.clone()))
                        }
                    };
                    self.client.finish_with(&answer, LAST).await;
                }
                (cut.into(), Next::Ends)
            }
        };
        passage.end(ended);
        next
    }

    /// A new connection to the host.
    async fn dial(&self, passage: &mut Passage, port: u16) -> Result<Stream, String> {
        let host = self.shared.dial(passage, port).await?;
        #[cfg(feature = "inspect")]
        let host = self.secured(host).await?;
        Ok(host)
    }

    /// Asks on a connection that was used before, where there is one. Where the host was about to close it, and so says
    /// nothing, nobody was asked.
    async fn ask_again(
        &mut self,
        passage: &mut Passage,
        out: &[u8],
    ) -> Option<(Stream, Result<Answered, Cut>)> {
        let target = self.again.as_ref()?;
        let (address, host) = self.shared.again.take(target, &passage.addresses())?;
        passage.address = Some(address);
        let nothing = Body::of_request(Framing::Absent);
        let ended =
            self.exchange(&host, out.to_vec(), Vec::new(), nothing, None, &mut Vec::new()).await;
        let unheard = matches!(ended, Err(Cut::Broken(_))) && self.motion.totals().1 == 0;
        (!unheard).then_some((host, ended))
    }

    /// TLS to the host itself, where what came in was in TLS.
    #[cfg(feature = "inspect")]
    async fn secured(&self, host: Stream) -> Result<Stream, String> {
        let (Some(inspection), Some(name)) = (&self.shared.config.inspection, &self.inspected)
        else {
            return Ok(host);
        };
        let connected = timeout(self.shared.config.limits.dial, inspection.connect(host, name));
        match connected.await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(format!("the host's TLS cannot be trusted: {error}")),
            Err(_) => Err("it took too long".to_owned()),
        }
    }

    async fn exchange(
        &mut self,
        host: &Stream,
        out: Vec<u8>,
        first: Vec<u8>,
        mut body: Body,
        mut passing: Option<Passing>,
        bytes: &mut Vec<u8>,
    ) -> Result<Answered, Cut> {
        let done = body.is_done();
        let mut begun = out;
        if self.chunked {
            write_chunk(&mut begun, &first, done);
        } else {
            begun.extend_from_slice(&first);
        }
        self.meter.charge(first.len())?;
        self.meter.charge_around(begun.len() - first.len())?;
        let Self { shared, client, head, chunked, meter, motion, .. } = self;
        let sent = |count| motion.sent(count);
        let upload = async {
            host.write_counted(&begun, sent).await?;
            while !body.is_done() {
                let mut data = Vec::new();
                let walked = body
                    .walk(bytes, false, |piece| data.extend_from_slice(piece))
                    .map_err(|bad| Denial::new("egress-malformed", bad.to_string()))?;
                bytes.drain(..walked.used);
                if let Some(passing) = &mut passing {
                    data = shared.lookers.take(passing, data, walked.done).await?;
                }
                let carried = data.len();
                meter.charge(carried)?;
                let mut piece = Vec::new();
                if *chunked {
                    write_chunk(&mut piece, &data, walked.done);
                } else {
                    piece = data;
                }
                meter.charge_around(piece.len() - carried)?;
                host.write_counted(&piece, sent).await?;
                if !walked.done && !client.read_onto(bytes, SHOWN).await? {
                    return Err(Cut::Broken("the body of the request ends too early".to_owned()));
                }
            }
            Ok::<_, Cut>(())
        };
        let answer = pass_answer(host, client, head, motion);
        let still = motion.stands_still(&shared.config.limits);
        tokio::pin!(upload, answer, still);
        let mut uploading = true;
        loop {
            tokio::select! {
                biased;
                sent = &mut upload, if uploading => {
                    sent?;
                    uploading = false;
                }
                answered = &mut answer => {
                    // Whoever answers before all was sent does not want the rest.
                    return match answered? {
                        Answered::Whole { .. } if uploading => Ok(Answered::Closed),
                        answered => Ok(answered),
                    };
                }
                cut = &mut still => return Err(cut),
            }
        }
    }

    /// A WebSocket: its bytes count like those of any tunnel.
    async fn upgraded(&mut self, host: &Stream, begun: Vec<u8>, bytes: &[u8]) -> Ended {
        if !self.shared.config.secrets {
            if let Err(error) = self.client.write_all(&begun).await {
                return Cut::from(error).into();
            }
            let Self { shared, client, meter, motion, .. } = self;
            let (limits, room) = (&shared.config.limits, shared.lookers.rooms().room());
            return websocket::carry(client, host, meter, motion, limits, room, bytes).await;
        }
        let first = async {
            self.client.write_all(&begun).await?;
            self.meter.charge(bytes.len())?;
            host.write_counted(bytes, |count| self.motion.sent(count)).await?;
            Ok::<_, Cut>(())
        };
        if let Err(cut) = first.await {
            return cut.into();
        }
        let limits = &self.shared.config.limits;
        carry_both(self.client, host, &mut self.meter, &self.motion, limits, |_| Ok(())).await
    }
}

/// Reads an answer and passes it on.
async fn pass_answer(
    host: &Stream,
    client: &Stream,
    head: &Head,
    motion: &Motion,
) -> Result<Answered, Cut> {
    let mut bytes = Vec::new();
    let answer = loop {
        let parsed = Answer::parse(&bytes)
            .map_err(|bad| Cut::Broken(format!("the answer cannot be read: {bad}")))?;
        match parsed {
            // What comes before the answer itself is for the proxy.
            Some(answer) if answer.status < 200 && answer.status != 101 => {
                bytes.drain(..answer.length);
            }
            Some(answer) => break answer,
            None => {
                let before = bytes.len();
                if !host.read_onto(&mut bytes, MAX_HEAD).await? {
                    return Err(Cut::Broken("there was no answer".to_owned()));
                }
                motion.received(bytes.len() - before);
            }
        }
    };
    if answer.status == 101 && !head.upgrades() {
        return Err(Cut::Broken("the host changes to something nobody asked for".to_owned()));
    }
    let mut body = Body::of_answer(answer.framing, answer.status, &head.method);
    let out = answer_head(&answer, head, body.is_endless())?;
    bytes.drain(..answer.length);
    if answer.status == 101 {
        motion.answered(answer.status);
        client.write_all(&out).await?;
        return Ok(Answered::Upgraded(bytes));
    }
    let endless = body.is_endless();
    let mut open = stays_open(&answer, head);
    let mut left = out;
    let mut done = false;
    let bad = |_| Cut::Broken("the body of the answer cannot be read".to_owned());
    if !bytes.is_empty() {
        let walked = body.walk(&bytes, true, |_| {}).map_err(bad)?;
        left.extend_from_slice(&bytes[..walked.used]);
        open &= walked.used == bytes.len();
        done = walked.done;
    }
    done |= body.is_done();
    motion.answered(answer.status);
    loop {
        client.write_all(&left).await?;
        left.clear();
        if done {
            return Ok(Answered::Whole { open });
        }
        let count = host
            .read_with(|piece| -> Result<usize, Cut> {
                let walked = body.walk(piece, true, |_| {}).map_err(bad)?;
                done = walked.done;
                open &= walked.used == piece.len();
                let written = client.write_some(&piece[..walked.used])?;
                left.extend_from_slice(&piece[written..walked.used]);
                Ok(piece.len())
            })
            .await??;
        if count == 0 {
            return if endless {
                Ok(Answered::Closed)
            } else {
                Err(Cut::Broken("the answer ends too early".to_owned()))
            };
        }
        motion.received(count);
    }
}

fn answer_head(answer: &Answer, head: &Head, endless: bool) -> Result<Vec<u8>, Cut> {
    let mut out = format!("HTTP/1.1 {} {}\r\n", answer.status, answer.reason).into_bytes();
    let forwarded = answer.forwarded().map_err(|bad| Cut::Broken(bad.to_string()))?;
    for header in forwarded {
        write_header(&mut out, &header.name, &header.value);
    }
    if answer.framing == Framing::Chunked {
        write_header(&mut out, "Transfer-Encoding", b"chunked");
    }
    if answer.status == 101 {
        write_header(&mut out, "Connection", b"Upgrade");
        write_header(&mut out, "Upgrade", b"websocket");
    } else if endless || !head.keeps_alive() {
        write_header(&mut out, "Connection", b"close");
    } else if head.minor == 0 {
        write_header(&mut out, "Connection", b"keep-alive");
    }
    out.extend_from_slice(b"\r\n");
    Ok(out)
}

fn write_chunk(out: &mut Vec<u8>, data: &[u8], last: bool) {
    if !data.is_empty() {
        out.extend_from_slice(format!("{:x}\r\n", data.len()).as_bytes());
        out.extend_from_slice(data);
        out.extend_from_slice(b"\r\n");
    }
    if last {
        out.extend_from_slice(b"0\r\n\r\n");
    }
}
