//! Functions and methods that only compute.

use std::rc::Rc;

use super::super::facts::Holds;
use super::calls::Args;
use super::decode;
use super::run::Run;
use super::value::{Data, GAP, Value};

impl Run<'_> {
    /// Functions that only compute.
    pub(super) fn computed(&mut self, path: &str, last: &str, args: &Args) -> Option<Value> {
        let first = args.get(0);
        let holds = first.whole();
        let decoded = |bytes: Option<Vec<u8>>| match bytes {
            Some(bytes) => Value::bytes(bytes, holds | Holds::DECODED),
            None => Value::unknown(holds | Holds::DECODED),
        };
        let bytes = || first.as_bytes();
        Some(match last {
            "b64decode" | "standard_b64decode" | "urlsafe_b64decode" | "decodebytes"
            | "a2b_base64" | "atob" | "decodestring" => {
                decoded(bytes().and_then(|bytes| decode::base64(&bytes)))
            }
            "b32decode" => decoded(bytes().and_then(|bytes| decode::base32(&bytes))),
            "b16decode" | "unhexlify" | "a2b_hex" | "fromhex" | "fromHex" => {
                decoded(bytes().and_then(|bytes| decode::hex(&bytes)))
            }
            "b85decode" => decoded(bytes().and_then(|bytes| decode::base85(&bytes, false))),
            "a85decode" => decoded(bytes().and_then(|bytes| decode::base85(&bytes, true))),
            "decompress"
            | "inflateSync"
            | "gunzipSync"
            | "unzipSync"
            | "inflateRawSync"
            | "brotliDecompressSync" => decoded(bytes().and_then(|bytes| decode::inflate(&bytes))),
            "decode" if path == "codecs.decode" => match args.get(1).as_text().as_deref() {
                Some("rot13" | "rot_13") => {
                    Value::text(decode::rot13(&first.shown()), holds | Holds::DECODED)
                }
                Some("hex") => decoded(bytes().and_then(|bytes| decode::hex(&bytes))),
                Some("base64") => decoded(bytes().and_then(|bytes| decode::base64(&bytes))),
                _ => Value::new(first.data, holds | Holds::DECODED),
            },
            "from" if path == "Buffer.from" => {
                match (args.get(1).as_text().as_deref(), &first.data) {
                    (Some("base64" | "base64url"), _) => {
                        decoded(bytes().and_then(|bytes| decode::base64(&bytes)))
                    }
                    (Some("hex"), _) => decoded(bytes().and_then(|bytes| decode::hex(&bytes))),
                    (_, Data::List(items)) => decoded(numbers(items)),
                    _ => first,
                }
            }
            "from" if path == "Array.from" => match first.items() {
                Some(items) => Value::list(items),
                None => first,
            },
            "loads"
                if path.starts_with("marshal")
                    || path.starts_with("pickle")
                    || path.starts_with("dill") =>
            {
                Value::unknown(holds | Holds::DECODED)
            }
            "fromCharCode" | "fromCodePoint" => {
                let items = match &first.data {
                    Data::List(items) => items.to_vec(),
                    _ => args.values.clone(),
                };
                match items.iter().map(|item| sign(item.as_number()?)).collect::<Option<String>>() {
                    Some(text) => Value::text(text, args.holds() | Holds::ASSEMBLED),
                    None => Value::unknown(args.holds() | Holds::ASSEMBLED),
                }
            }
            "chr" => match first.as_number().and_then(sign) {
                Some(sign) => Value::text(sign.to_string(), holds | Holds::ASSEMBLED),
                None => Value::unknown(holds | Holds::ASSEMBLED),
            },
            "ord" => match first.as_text().and_then(|text| text.chars().next()) {
                Some(sign) if sign != GAP => {
                    Value::new(Data::Number(i64::from(u32::from(sign))), holds)
                }
                _ => Value::unknown(holds),
            },
            "bytes" | "bytearray" => match &first.data {
                Data::List(items) => match numbers(items) {
                    Some(bytes) => Value::bytes(bytes, holds | Holds::ASSEMBLED),
                    None => Value::unknown(holds | Holds::ASSEMBLED),
                },
                Data::Text(text) => Value::bytes(text.as_bytes().to_vec(), holds),
                _ => first,
            },
            "str" | "String" | "Path" | "PurePath" | "PosixPath" | "expanduser" | "normpath"
            | "realpath" | "abspath" | "fspath" | "compile" | "promisify" | "resolve"
            | "normalize" | "expandvars" | "quote" | "dict" | "memoryview" | "URL" | "Request"
                if !matches!(last, "resolve" | "normalize" if args.values.len() != 1) =>
            {
                let mut value = first;
                // `Request(url, data=…)` carries what is given to it.
                value.holds |= args.holds();
                if last == "Path" && args.values.len() > 1 {
                    value = joined(&args.values);
                }
                value
            }
            "list" | "tuple" | "iter" | "set" => match first.items() {
                Some(items) => Value::list(items),
                None => Value::unknown(holds),
            },
            "reversed" => match first.items() {
                Some(mut items) => {
                    items.reverse();
                    let mut list = Value::list(items);
                    list.holds |= Holds::ASSEMBLED;
                    list
                }
                None => first,
            },
            "range" => {
                let known: Option<Vec<i64>> = args.values.iter().map(Value::as_number).collect();
                let (from, to, step) = match known?.as_slice() {
                    [to] => (0, *to, 1),
                    [from, to] => (*from, *to, 1),
                    [from, to, step] => (*from, *to, *step),
                    _ => return None,
                };
                if step == 0 || (to - from) / step > 4096 {
                    return Some(Value::default());
                }
                let mut out = Vec::new();
                let mut at = from;
                while if step > 0 { at < to } else { at > to } {
                    out.push(Value::number(at));
                    at += step;
                }
                Value::list(out)
            }
            "enumerate" => {
                let items = first.items()?;
                let pair = |(place, item)| {
                    Value::list(vec![Value::number(i64::try_from(place).unwrap_or(0)), item])
                };
                Value::list(items.into_iter().enumerate().map(pair).collect())
            }
            "zip" => {
                let (one, two) = (first.items()?, args.get(1).items()?);
                Value::list(
                    one.into_iter()
                        .zip(two)
                        .map(|(one, two)| Value::list(vec![one, two]))
                        .collect(),
                )
            }
            "map" | "filter" if path == last => {
                let items = args.get(1).items();
                match (&first.data, items) {
                    (Data::Path(function), Some(items)) => {
                        let function = function.clone();
                        let items = items.into_iter().map(|item| {
                            let one = Args { values: vec![item], named: Vec::new() };
                            self.computed(
                                &function,
                                function.rsplit('.').next().unwrap_or(&function),
                                &one,
                            )
                            .unwrap_or_default()
                        });
                        Value::list(items.collect())
                    }
                    (Data::Function(file, index), Some(items)) => {
                        let function = (*file, *index);
                        Value::list(
                            items.into_iter().map(|item| self.apply(function, &[item])).collect(),
                        )
                    }
                    _ => Value::unknown(args.holds()),
                }
            }
            "join" if path.ends_with("path.join") => joined(&args.values),
            "resolve" if path.ends_with("path.resolve") => joined(&args.values),
            "joinpath" => joined(&args.values),
            "int" | "parseInt" => match (first.as_text(), args.get(1).as_number()) {
                (Some(text), base) => {
                    let base = base
                        .and_then(|base| u32::try_from(base).ok())
                        .filter(|base| (2..=36).contains(base))
                        .unwrap_or(10);
                    let digits = text.trim().trim_start_matches("0x");
                    i64::from_str_radix(digits, base)
                        .map_or_else(|_| Value::unknown(holds), Value::number)
                }
                _ => Value::unknown(holds),
            },
            "len" => Value::number(i64::try_from(first.items()?.len()).ok()?),
            "decodeURIComponent" | "unquote" | "unescape" | "decodeURI" => {
                let text = percent_encoding::percent_decode_str(&first.shown())
                    .decode_utf8_lossy()
                    .into_owned();
                Value::text(text, holds | Holds::DECODED)
            }
            "getattr" | "get" if last == "getattr" || path == "Reflect.get" => {
                let (base, name) = (first, args.get(1));
                let mut value = self.item(&base, &name);
                value.holds |= name.holds;
                value
            }
            "globals" | "locals" | "vars" => Value::path(format!("{last}()")),
            "require" | "__import__" | "import_module" | "import" => match first.as_text() {
                Some(name) if !name.contains(GAP) => {
                    let name: Rc<str> = name.strip_prefix("node:").map_or(name.clone(), Rc::from);
                    Value::new(Data::Path(name), holds)
                }
                _ => Value::unknown(holds),
            },
            _ => return None,
        })
    }

    /// Methods that only compute.
    pub(super) fn computed_method(
        &mut self,
        base: &Value,
        name: &str,
        args: &Args,
    ) -> Option<Value> {
        let holds = base.whole();
        let text = match &base.data {
            Data::Text(text) => Some(text.clone()),
            _ => None,
        };
        Some(match name {
            "join" => {
                let (list, between) = match &base.data {
                    // `"".join(list)` and `list.join("")`.
                    Data::List(_) => {
                        (base.clone(), args.values.first().map_or(",".to_owned(), Value::shown))
                    }
                    Data::Text(text) => (args.get(0), text.to_string()),
                    _ => return None,
                };
                let all = list.whole() | holds | Holds::ASSEMBLED;
                match list.items() {
                    Some(items) => Value::text(
                        items.iter().map(Value::shown).collect::<Vec<_>>().join(&between),
                        all,
                    ),
                    None => Value::unknown(all),
                }
            }
            "decode" | "encode" | "toString" | "strip" | "trim" | "expanduser" | "resolve"
            | "absolute" | "as_posix" | "trimEnd" | "rstrip" => match (&base.data, name) {
                (Data::Path(_), _) => return None,
                (Data::Bytes(bytes), "decode" | "toString") => match std::str::from_utf8(bytes) {
                    Ok(text) => Value::text(text, holds),
                    Err(_) => Value::unknown(holds),
                },
                (Data::Text(text), "strip" | "trim") => Value::text(text.trim(), holds),
                _ => base.clone(),
            },
            "replace" | "replaceAll" => {
                let text = text?;
                let (from, to) = (args.get(0).as_text()?, args.get(1).as_text()?);
                if from.is_empty() || text.len().saturating_mul(to.len() + 1) > 1 << 22 {
                    return Some(Value::unknown(holds));
                }
                Value::text(text.replace(&*from, &to), holds | Holds::ASSEMBLED)
            }
            "split" => {
                let text = text?;
                let by = args.values.first().and_then(Value::as_text);
                let parts: Vec<Value> = match by.as_deref() {
                    None => text.split_whitespace().map(|part| Value::text(part, holds)).collect(),
                    Some("") => text
                        .chars()
                        .take(8192)
                        .map(|sign| Value::text(sign.to_string(), holds))
                        .collect(),
                    Some(by) => {
                        text.split(by).take(8192).map(|part| Value::text(part, holds)).collect()
                    }
                };
                Value::list(parts)
            }
            "reverse" => match &base.data {
                Data::List(items) => {
                    let items: Vec<Value> = items.iter().rev().cloned().collect();
                    Value::new(Data::List(items.into()), holds | Holds::ASSEMBLED)
                }
                _ => return None,
            },
            "concat" => args.values.iter().fold(base.clone(), |sum, part| sum.plus(part)),
            "lower" | "toLowerCase" => Value::text(text?.to_lowercase(), holds),
            "upper" | "toUpperCase" => Value::text(text?.to_uppercase(), holds),
            "charAt" | "at" => self.item(base, &args.get(0)),
            "charCodeAt" | "codePointAt" => {
                let sign = self.item(base, &args.get(0)).as_text()?.chars().next()?;
                Value::number(i64::from(u32::from(sign)))
            }
            "slice" | "substring" | "substr" => {
                let signs: Vec<char> = text?.chars().collect();
                let (from, to) =
                    (args.get(0).as_number()?, args.values.get(1).and_then(Value::as_number));
                let to = if name == "substr" {
                    to.map(|length| from.saturating_add(length))
                } else {
                    to
                };
                Value::text(
                    decode::slice(&signs, [Some(from), to, None]).into_iter().collect::<String>(),
                    holds,
                )
            }
            "map" => {
                let (items, function) = (base.items()?, args.get(0));
                match function.data {
                    Data::Function(file, index) => {
                        let mut out = Vec::new();
                        for (place, item) in items.into_iter().take(4096).enumerate() {
                            let place = Value::number(i64::try_from(place).unwrap_or(0));
                            out.push(self.apply((file, index), &[item, place]));
                        }
                        Value::list(out)
                    }
                    _ => return None,
                }
            }
            "get" => base.member(&args.get(0).as_text()?)?,
            "items" | "entries" => match &base.data {
                Data::Map(pairs) => {
                    let pair = |(key, value): &(String, Value)| {
                        Value::list(vec![Value::text(key.as_str(), Holds::NOTHING), value.clone()])
                    };
                    Value::list(pairs.iter().map(pair).collect())
                }
                _ => return None,
            },
            "joinpath" => {
                let mut parts = vec![base.clone()];
                parts.extend(args.values.iter().cloned());
                joined(&parts)
            }
            _ => return None,
        })
    }
}

/// Paths put together.
fn joined(parts: &[Value]) -> Value {
    let holds = parts.iter().fold(Holds::NOTHING, |all, part| all | part.whole());
    let text: Vec<String> = parts.iter().map(Value::shown).collect();
    if text.iter().all(|part| part.chars().all(|sign| sign == GAP)) {
        return Value::unknown(holds);
    }
    Value::text(text.join("/").replace("//", "/"), holds)
}

fn sign(number: i64) -> Option<char> {
    u32::try_from(number).ok().and_then(char::from_u32)
}

fn numbers(items: &[Value]) -> Option<Vec<u8>> {
    items.iter().map(|item| u8::try_from(item.as_number()?).ok()).collect()
}
