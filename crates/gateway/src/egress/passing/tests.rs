use super::*;

#[test]
fn a_secret_in_two_pieces_is_found_before_it_is_sent() {
    let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ\
               AAAAAAAAABAAAAMwAAAAtzc2gtZWQyNTUxOQAAACDmZ3Vlc3NlZG5vYm9keXdvdWxkYmVsaWV2ZQ\n\
               -----END OPENSSH PRIVATE KEY-----\n";
    assert!(secret_in(key.as_bytes()).is_some());
    for cut in 1..key.len() {
        let mut passing = Passing::default();
        let mut sent = passing.take(&[b'x'; 10_000]).unwrap();
        let whole = passing.take(&key.as_bytes()[..cut]).and_then(|more| {
            sent.extend(more);
            sent.extend(passing.take(&key.as_bytes()[cut..])?);
            passing.finish()
        });
        assert!(whole.is_err(), "{cut}");
        assert!(sent.iter().all(|byte| *byte == b'x'), "{cut}");
    }
}

#[test]
fn what_is_encoded_several_times_is_found_wherever_it_stands() {
    let escaped = |text: &str| -> String {
        (0..3).fold(text.to_owned(), |text, _| {
            text.bytes().map(|byte| format!("%{byte:02x}")).collect()
        })
    };
    let hex = |text: &str| -> String { text.bytes().map(|byte| format!("{byte:02x}")).collect() };
    let lines = |text: &str| -> String {
        let lines: Vec<_> = text.as_bytes().chunks(76).map(String::from_utf8_lossy).collect();
        lines.join("\n")
    };
    let token = ["gl", "pat-", "x7Kq2mZp9RtW4vBn6LsD"].concat();
    for written in [
        escaped(&hex(&hex(&token))),
        hex(&escaped(&token)),
        escaped(&hex(&escaped(&token))),
        lines(&hex(&hex(&escaped(&format!("{token} {token}"))))),
    ] {
        assert!(written.len() <= WHOLE, "{}", written.len());
        for start in (0..4 * HELD).step_by(8191) {
            let text = "w ".repeat(3 * HELD);
            let body = format!("{}{written}{text}", &text[..start]);
            let (mut passing, mut sent) = (Passing::default(), 0);
            let found = body
                .as_bytes()
                .chunks(50_000)
                .any(|piece| passing.take(piece).map(|out| sent += out.len()).is_err());
            assert!(found || passing.finish().is_err(), "{start} {}", written.len());
            assert!(sent <= start, "{sent} {start}");
        }
    }
}

#[test]
fn a_body_that_grows_much_is_unpacked_in_turns() {
    let bomb = {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(&vec![b' '; 40 << 20]).unwrap();
        encoder.finish().unwrap()
    };
    let mut passing = passing_gzip(bomb.len());
    let mut sent = passing.take(&bomb).unwrap();
    sent.extend(passing.finish().unwrap());
    assert!(sent.is_empty());
    let mut turns = 0;
    while let Some(more) = passing.unpack().unwrap() {
        sent.extend(more);
        turns += 1;
    }
    assert!((20..=41).contains(&turns), "{turns}");
    assert!(sent == bomb);
}

fn passing_gzip(length: usize) -> Passing {
    let head =
        format!("POST / HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Length: {length}\r\n\r\n");
    let head = Head::parse(head.as_bytes()).unwrap().unwrap();
    Passing::of(&head, 64 << 20).unwrap()
}

fn pass(passing: &mut Passing, piece: &[u8]) -> Result<Vec<u8>, Denial> {
    let mut out = passing.take(piece)?;
    while let Some(more) = passing.unpack()? {
        out.extend(more);
    }
    Ok(out)
}

#[test]
fn the_beginning_of_what_is_compressed_is_shown_however_long_it_is() {
    let mut random = 7_u64;
    let noise = std::iter::repeat_with(|| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        random.to_be_bytes()[0]
    });
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(b"password=").unwrap();
    encoder.write_all(&noise.take(200 << 10).collect::<Vec<_>>()).unwrap();
    let body = encoder.finish().unwrap();
    let mut passing = passing_gzip(body.len());
    let mut sent = pass(&mut passing, &body[..64 << 10]).unwrap();
    assert!(passing.unpacked().unwrap().starts_with(b"password="));
    assert!(passing.weight() < 600 << 10);
    sent.extend(pass(&mut passing, &body[64 << 10..]).unwrap());
    sent.extend(passing.finish().unwrap());
    sent.extend(pass(&mut passing, b"").unwrap());
    assert!(sent == body);
}

#[test]
fn bytes_that_become_nothing_do_not_wait_for_long() {
    let mut passing = passing_gzip(10 << 20);
    let mut body = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 0, 1, 0, 254, 255, b'x'];
    body.extend([0, 0, 0, 255, 255].repeat(400 << 10));
    assert!(body.chunks(32 << 10).any(|piece| pass(&mut passing, piece).is_err()));
    assert!(passing.weight() < 1 << 20, "{}", passing.weight());
}
