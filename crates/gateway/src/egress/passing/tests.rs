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
    let lines = format!(
        "POST / HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        bomb.len()
    );
    let head = Head::parse(lines.as_bytes()).unwrap().unwrap();
    let mut passing = Passing::of(&head, 64 << 20).unwrap();
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
