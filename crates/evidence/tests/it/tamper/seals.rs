//! Seals and cosignatures that were changed, or that show what was.

use super::*;

pub(super) const SEAL_ROWS: &[Row] = &[
    row("everything rewritten to agree", Base::SealedSample, consistent_rewrite, Check::SealRoot),
    row("end cut off", Base::SealedSample, truncated_tail, Check::SealTruncated),
    row(
        "rewritten and cut off before the first seal",
        Base::SealedPlain,
        |f| {
            let records = f.records();
            f.rewrite(&records[..1]);
        },
        Check::SealTruncated,
    ),
    row(
        "signed again with another log key",
        Base::SealedSample,
        |f| {
            let other = LogKeys::new(&OTHER_SEED, &EPOCH_SEED);
            f.set(CHECKPOINTS, framed(&other.seals(&f.tree(), &[2, 4, 6])));
        },
        Check::SealOrigin,
    ),
    row(
        "signed again with another log key under the old name",
        Base::SealedSample,
        |f| {
            let other = LogKeys::new(&OTHER_SEED, &EPOCH_SEED);
            let text = notes(f, CHECKPOINTS)[1].text.clone();
            edit_notes(f, CHECKPOINTS, |notes| {
                notes[1].signatures[0].bytes = other.log.sign(&text).unwrap().bytes;
            });
        },
        Check::SealSignature,
    ),
    row(
        "signature of the log removed",
        Base::SealedSample,
        |f| {
            edit_notes(f, CHECKPOINTS, |notes| {
                notes[2].signatures.remove(0);
            });
        },
        Check::SealSignature,
    ),
    row(
        "signature of the epoch removed",
        Base::SealedSample,
        |f| {
            edit_notes(f, CHECKPOINTS, |notes| {
                notes[2].signatures.remove(1);
            });
        },
        Check::SealEpochSignature,
    ),
    row(
        "signature of the epoch by the log key",
        Base::SealedSample,
        |f| {
            edit_notes(f, CHECKPOINTS, |notes| {
                notes[2].signatures[1].bytes = notes[2].signatures[0].bytes.clone();
            });
        },
        Check::SealEpochSignature,
    ),
    row(
        "past sealed again by a thief of today's keys",
        Base::SealedSample,
        |f| {
            consistent_rewrite(f);
            let (keys, tree) = (LogKeys::usual(), f.tree());
            let thief = wardkeep_evidence::seal::EpochKey::restore(1, keys.epoch(2).seed());
            let slots = (FIRST_SLOT + 1, FIRST_SLOT + 1);
            let root = tree.root_at(4).unwrap();
            let forged = sign_seal(&keys.public, &keys.log, &thief, slots, 4, root).unwrap();
            edit_notes(f, CHECKPOINTS, |notes| notes[1] = forged);
        },
        Check::SealEpochKey,
    ),
    row(
        "epoch missing",
        Base::SealedSample,
        |f| {
            edit_notes(f, CHECKPOINTS, |notes| {
                notes.remove(1);
            });
        },
        Check::SealEpochMissing,
    ),
    row(
        "first epoch missing",
        Base::SealedSample,
        |f| {
            edit_notes(f, CHECKPOINTS, |notes| {
                notes.remove(0);
            });
        },
        Check::SealEpochMissing,
    ),
    row(
        "epoch doubled",
        Base::SealedSample,
        |f| {
            edit_notes(f, CHECKPOINTS, |notes| notes.insert(1, notes[1].clone()));
        },
        Check::SealEpochDoubled,
    ),
    row(
        "epochs swapped",
        Base::SealedSample,
        |f| {
            edit_notes(f, CHECKPOINTS, |notes| notes.swap(0, 1));
        },
        Check::SealEpochMissing,
    ),
    row(
        "root edited",
        Base::SealedSample,
        |f| {
            edit_notes(f, CHECKPOINTS, |notes| {
                let root = notes[0].text.lines().nth(2).unwrap().to_owned();
                notes[1].text = notes[1]
                    .text
                    .lines()
                    .enumerate()
                    .map(|(n, line)| format!("{}\n", if n == 2 { &root } else { line }))
                    .collect();
            });
        },
        Check::SealSignature,
    ),
    row(
        "size edited",
        Base::SealedSample,
        |f| {
            edit_notes(f, CHECKPOINTS, |notes| {
                notes[2].text = notes[2].text.replacen("\n6\n", "\n5\n", 1)
            });
        },
        Check::SealSignature,
    ),
    row(
        "log that shrank, signed so",
        Base::SealedSample,
        |f| {
            let keys = LogKeys::usual();
            f.set(CHECKPOINTS, framed(&keys.seals(&f.tree(), &[2, 4, 3])));
        },
        Check::SealSize,
    ),
    row(
        "slots reversed",
        Base::SealedSample,
        |f| {
            let keys = LogKeys::usual();
            let note = keys.seal(&f.tree(), 2, 6);
            let slot = FIRST_SLOT + 2;
            let text =
                note.text.replace(&format!("{slot}-{slot}"), &format!("{slot}-{}", slot - 1));
            let epoch = wardkeep_evidence::note::SigningKey::from_seed(
                &format!("{}/epoch", keys.public.origin()),
                wardkeep_evidence::note::Algorithm::Ed25519,
                keys.epoch(2).seed(),
            )
            .unwrap();
            let mut forged = Note::new(text).unwrap();
            forged.push(keys.log.sign(&forged.text).unwrap()).unwrap();
            forged.push(epoch.sign(&forged.text).unwrap()).unwrap();
            edit_notes(f, CHECKPOINTS, |notes| notes[2] = forged);
        },
        Check::SealSlots,
    ),
    row(
        "seal that is no seal",
        Base::SealedSample,
        |f| {
            let keys = LogKeys::usual();
            let text = format!("{}\n6\n{}\n", keys.public.origin(), f.tree().root_at(6).unwrap());
            let mut note = Note::new(text).unwrap();
            note.push(keys.log.sign(&note.text).unwrap()).unwrap();
            edit_notes(f, CHECKPOINTS, |notes| notes.push(note));
        },
        Check::SealFormat,
    ),
    row(
        "garbage among the seals",
        Base::SealedSample,
        |f| {
            let mut bytes = f.get(CHECKPOINTS).to_vec();
            bytes.extend_from_slice(b"~ 12\nnot a note");
            f.set(CHECKPOINTS, bytes);
        },
        Check::SealFormat,
    ),
    row(
        "keys removed, seals kept",
        Base::SealedSample,
        |f| {
            f.0.remove(LOG_PUBLIC);
        },
        Check::SealFormat,
    ),
    row("keys that are none", Base::SealedSample, |f| f.set(LOG_PUBLIC, "x\n"), Check::SealFormat),
    row(
        "keys swapped, seals kept",
        Base::SealedSample,
        |f| {
            let other = LogKeys::new(&OTHER_SEED, &OTHER_SEED);
            f.set(LOG_PUBLIC, format!("{}\n", other.public));
        },
        Check::SealOrigin,
    ),
    row(
        "cosigned note that is no note",
        Base::SealedSample,
        |f| {
            f.set(COSIGNED, "~ 4\nabc\n\n");
        },
        Check::SealFormat,
    ),
];

/// Rows that need the caller to trust keys.
pub(super) const TRUST_ROWS: &[Row] = &[
    row(
        "sealed anew by another log",
        Base::SealedSample,
        |f| {
            consistent_rewrite(f);
            seal(f, &LogKeys::new(&OTHER_SEED, &OTHER_SEED), &[2, 4, 6]);
        },
        Check::SealOrigin,
    ),
    row(
        "first epoch key swapped",
        Base::SealedSample,
        |f| {
            seal(f, &LogKeys::new(&LOG_SEED, &OTHER_SEED), &[2, 4, 6]);
        },
        Check::SealOrigin,
    ),
    row(
        "seals removed",
        Base::SealedSample,
        |f| {
            consistent_rewrite(f);
            f.0.retain(|name, _| !name.starts_with("seals/"));
        },
        Check::SealOrigin,
    ),
    row(
        "rewritten and sealed with the stolen keys, witness unasked",
        Base::SealedSample,
        |f| {
            let cosigned = f.get(COSIGNED).to_vec();
            consistent_rewrite(f);
            seal(f, &LogKeys::usual(), &[2, 4, 6]);
            f.set(COSIGNED, cosigned);
        },
        Check::WitnessHead,
    ),
    row(
        "older state restored, sealed with the stolen keys",
        Base::SealedSample,
        |f| {
            let cosigned = f.get(COSIGNED).to_vec();
            let records = f.records();
            f.rewrite(&records[..4]);
            seal(f, &LogKeys::usual(), &[2, 4]);
            f.set(COSIGNED, cosigned);
        },
        Check::WitnessHead,
    ),
    row(
        "fork: the witness cosigned another history",
        Base::SealedSample,
        |f| {
            let mut other = f.clone();
            consistent_rewrite(&mut other);
            let keys = LogKeys::usual();
            let note = cosigned(&keys.seal(&other.tree(), 2, 6), &witness(), COSIGNED_AT);
            edit_notes(f, COSIGNED, |notes| notes.push(note));
        },
        Check::WitnessHead,
    ),
    row(
        "cosignature forged",
        Base::SealedSample,
        |f| {
            let forger = witness_from(&OTHER_SEED);
            edit_notes(f, COSIGNED, |notes| {
                let forged = forger.cosign(&notes[0].text, COSIGNED_AT).unwrap();
                notes[0].signatures[2].bytes = forged.bytes;
            });
        },
        Check::WitnessSignature,
    ),
    row(
        "time of a cosignature edited",
        Base::SealedSample,
        |f| {
            edit_notes(f, COSIGNED, |notes| notes[0].signatures[2].bytes[7] ^= 1);
        },
        Check::WitnessSignature,
    ),
    row(
        "cosigned head of another log",
        Base::SealedSample,
        |f| {
            let other = LogKeys::new(&OTHER_SEED, &OTHER_SEED);
            let note = cosigned(&other.seal(&f.tree(), 2, 6), &witness(), COSIGNED_AT);
            edit_notes(f, COSIGNED, |notes| notes[0] = note);
        },
        Check::SealOrigin,
    ),
    row(
        "cosigned head that the log never signed",
        Base::SealedSample,
        |f| {
            edit_notes(f, COSIGNED, |notes| {
                notes[0].signatures.remove(0);
            });
        },
        Check::SealSignature,
    ),
    row(
        "part: cosigned head of another history",
        Base::Part,
        |f| {
            let mut other = sample();
            consistent_rewrite(&mut other);
            let keys = LogKeys::usual();
            let note = cosigned(&keys.seal(&other.tree(), 1, 5), &witness(), COSIGNED_AT);
            edit_notes(f, COSIGNED, |notes| notes.push(note));
        },
        Check::WitnessHead,
    ),
];
