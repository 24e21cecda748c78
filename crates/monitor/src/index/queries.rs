//! Questions to the index.

use rusqlite::types::Value;
use rusqlite::{OptionalExtension as _, Statement, params};
use wardkeep_evidence::hash::RecordId;
use wardkeep_evidence::time::Timestamp;

use super::shape::FIRST_NOTICE;
use super::words::Said;
use super::{Category, Filter, Index, IndexError, Severity, Shape, key, signed, unsigned};
use crate::journal::{Location, SegmentNumber};

/// A line as the index has it: a hint where to look, nothing more.
#[derive(Debug, Clone)]
pub struct Row {
    /// Position in the log.
    pub index: u64,
    /// Where its line is.
    pub location: Location,
    /// What shape the record has.
    pub shape: Shape,
    /// Its session.
    pub session: Option<String>,
}

/// Which records are asked for; all that is given must hold.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// Not before this time of the record.
    pub since: Option<Timestamp>,
    /// Not after this time of the record.
    pub until: Option<Timestamp>,
    /// Of this session.
    pub session: Option<String>,
    /// Of this category.
    pub category: Option<Category>,
    /// At least so grave.
    pub severity: Option<Severity>,
    /// Behind this position in the log.
    pub above: Option<u64>,
    /// Before this position in the log.
    pub below: Option<u64>,
}

impl Asked {
    /// Whether a shape is among those asked for.
    #[must_use]
    pub fn takes(&self, shape: &Shape) -> bool {
        self.category.is_none_or(|category| shape.category == Some(category))
            && self.severity.is_none_or(|severity| shape.level >= Some(severity))
    }

    fn is_timeless(&self) -> bool {
        let Self { since, until, session, category: _, severity: _, above, below } = self;
        let whole = above.is_none() && below.is_none();
        since.is_none() && until.is_none() && session.is_none() && whole
    }
}

impl Index {
    /// Where the index says a record is.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn location(&self, id: RecordId) -> Result<Option<Location>, IndexError> {
        Ok(self.place(id)?.map(|(_, location)| location))
    }

    /// Position in the log and place of a record, as the index says.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn place(&self, id: RecordId) -> Result<Option<(u64, Location)>, IndexError> {
        let mut statement =
            self.ask("SELECT segment, offset, length, idx FROM lines WHERE key = ?1 LIMIT 1")?;
        statement
            .query_row([key(&id)], |row| Ok((unsigned(row.get(3)?), location(row)?)))
            .optional()
            .map_err(|error| self.failed(error))
    }

    /// Where the index says the records with ids from `first` to `last` are, at most `limit`. Only
    /// the first 16 digits are compared: ids must be looked at.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn between(
        &self,
        first: RecordId,
        last: RecordId,
        limit: u32,
    ) -> Result<Vec<Location>, IndexError> {
        let mut statement = self.ask(
            "SELECT segment, offset, length FROM lines
             WHERE key >= ?1 AND key <= ?2 ORDER BY key LIMIT ?3",
        )?;
        self.collect(&mut statement, params![key(&first), key(&last), limit], location)
    }

    /// Where the index says the newest records that match are, newest first, at most `limit`.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn newest(&self, filter: &Filter, limit: u32) -> Result<Vec<Location>, IndexError> {
        let places = self.newest_at(filter, limit)?;
        Ok(places.into_iter().map(|(_, location)| location).collect())
    }

    /// The same with positions in the log.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub(crate) fn newest_at(
        &self,
        filter: &Filter,
        limit: u32,
    ) -> Result<Vec<(u64, Location)>, IndexError> {
        let (conditions, values) = conditions(filter);
        let mut statement = self.ask(&format!(
            "SELECT segment, offset, length, idx FROM lines
             WHERE {conditions} ORDER BY idx DESC LIMIT {limit}"
        ))?;
        let values = rusqlite::params_from_iter(values);
        self.collect(&mut statement, values, |row| Ok((unsigned(row.get(3)?), location(row)?)))
    }

    /// The newest notifications that are asked for, newest first, at most `limit`, and how many
    /// there are.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn notices(&self, asked: &Asked, limit: u32) -> Result<(Vec<Row>, u64), IndexError> {
        // The comparison with the first notice is what makes SQLite use the partial index.
        let among = format!(
            "FROM lines WHERE shape >= {FIRST_NOTICE} AND shape >= ?1
               AND (?2 IS NULL OR shape & ?3 = ?2) AND (?4 IS NULL OR idx > ?4)
               AND (?5 IS NULL OR time >= ?5) AND (?6 IS NULL OR time <= ?6)
               AND (?7 IS NULL OR session = ?7) AND idx < ?8"
        );
        let least = Shape::lowest(asked.severity.unwrap_or(Severity::Info));
        let category = asked.category.map(Shape::category_bits);
        let values = params![
            least,
            category.map(|(_, value)| value),
            category.map(|(mask, _)| mask),
            asked.above.map(signed),
            asked.since.map(Timestamp::unix),
            asked.until.map(Timestamp::unix),
            asked.session,
            asked.below.map_or(i64::MAX, signed),
        ];
        let mut statement = self.ask(&format!("SELECT COUNT(*) {among}"))?;
        let count = statement.query_row(values, |row| row.get(0)).map_err(|e| self.failed(e))?;
        let columns = "SELECT segment, offset, length, idx, shape, session";
        let mut statement =
            self.ask(&format!("{columns} {among} ORDER BY idx DESC LIMIT {limit}"))?;
        let rows = self.collect(&mut statement, values, row)?;
        Ok((rows.into_iter().flatten().collect(), unsigned(count)))
    }

    /// How many records there are of each shape, and how many denials their floods stand for.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn shapes(&self, asked: &Asked) -> Result<Vec<(Shape, u64, u64)>, IndexError> {
        let group = |row: &rusqlite::Row<'_>| {
            let (shape, records, many): (i64, i64, Option<i64>) =
                (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok((Shape::unpack(shape), unsigned(records), unsigned(many.unwrap_or(0))))
        };
        let groups = if asked.is_timeless() {
            let mut statement = self.ask("SELECT shape, records, many FROM shapes")?;
            self.collect(&mut statement, [], group)?
        } else {
            let mut statement = self.ask(
                "SELECT shape, COUNT(*), SUM(many) FROM lines
                 WHERE (?1 IS NULL OR time >= ?1) AND (?2 IS NULL OR time <= ?2)
                   AND (?3 IS NULL OR session = ?3) AND (?4 IS NULL OR idx > ?4)
                   AND idx < ?5
                 GROUP BY shape",
            )?;
            let (since, until) =
                (asked.since.map(Timestamp::unix), asked.until.map(Timestamp::unix));
            let below = asked.below.map_or(i64::MAX, signed);
            let values = params![since, until, asked.session, asked.above.map(signed), below];
            self.collect(&mut statement, values, group)?
        };
        let known = groups.into_iter().filter_map(|(shape, records, many)| {
            shape.filter(|shape| asked.takes(shape)).map(|shape| (shape, records, many))
        });
        Ok(known.collect())
    }

    /// How many records are indexed.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn records(&self) -> Result<u64, IndexError> {
        let mut statement = self.ask("SELECT COALESCE(SUM(records), 0) FROM shapes")?;
        let count = statement.query_row([], |row| row.get(0)).map_err(|e| self.failed(e))?;
        Ok(unsigned(count))
    }

    /// Where the newest acknowledgements are, newest first, at most `limit`.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn acknowledgements(&self, limit: u32) -> Result<Vec<Location>, IndexError> {
        let mut statement = self.ask(
            "SELECT segment, offset, length FROM lines
             WHERE shape & 15872 = 3072 ORDER BY idx DESC LIMIT ?1",
        )?;
        self.collect(&mut statement, [limit], location)
    }

    /// Where the newest records of files that were kept are, newest first, at most `limit`: of one
    /// session, or of all.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub(crate) fn kept_for_undo(
        &self,
        session: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Location>, IndexError> {
        let (mask, said) = Shape::said_bits(Said::Undo);
        let mut statement = self.ask(
            "SELECT segment, offset, length FROM lines
             WHERE shape & ?1 = ?2 AND (?3 IS NULL OR session = ?3) ORDER BY idx DESC LIMIT ?4",
        )?;
        self.collect(&mut statement, params![mask, said, session, limit], location)
    }

    /// The line at a position in the log.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn row(&self, index: u64) -> Result<Option<Row>, IndexError> {
        let mut statement = self
            .ask("SELECT segment, offset, length, idx, shape, session FROM lines WHERE idx = ?1")?;
        let found = statement.query_row([signed(index)], row).optional();
        found.map(Option::flatten).map_err(|error| self.failed(error))
    }

    /// Hands the lines from `first` to `last` to `each`, in order: position, shape, session and
    /// subject.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub(crate) fn each_line(
        &self,
        first: u64,
        last: u64,
        mut each: impl FnMut(u64, Shape, Option<&str>, Option<&str>),
    ) -> Result<(), IndexError> {
        let failed = |error| self.failed(error);
        let mut statement = self.ask(
            "SELECT idx, shape, session, subject FROM lines
             WHERE idx >= ?1 AND idx <= ?2 ORDER BY idx",
        )?;
        let mut rows = statement.query(params![signed(first), signed(last)]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let index: i64 = row.get(0).map_err(failed)?;
            let shape: i64 = row.get(1).map_err(failed)?;
            if let Some(shape) = Shape::unpack(shape) {
                let text = |column| row.get_ref(column).ok().and_then(|value| value.as_str().ok());
                each(unsigned(index), shape, text(2), text(3));
            }
        }
        Ok(())
    }

    /// The newest change of a file behind a position: where its line is.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub(crate) fn changes_after(
        &self,
        subject: &str,
        after: u64,
        limit: u32,
    ) -> Result<Vec<(u64, Location)>, IndexError> {
        let mut statement = self.ask(
            "SELECT segment, offset, length, idx FROM lines
             WHERE shape & 31 IN (6, 7, 13) AND subject = ?1 AND idx > ?2
             ORDER BY idx DESC LIMIT ?3",
        )?;
        let values = params![subject, signed(after), limit];
        self.collect(&mut statement, values, |row| Ok((unsigned(row.get(3)?), location(row)?)))
    }

    /// Where the index says the newest changes of a file are, newest first, at most `limit`. What was
    /// only staged is none.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub(crate) fn changes_of(
        &self,
        subject: &str,
        limit: u32,
    ) -> Result<Vec<(u64, Location)>, IndexError> {
        let mut statement = self.ask(
            "SELECT segment, offset, length, idx FROM lines
             WHERE shape & 31 IN (6, 7, 13) AND subject = ?1 AND shape & 245760 <> 49152
             ORDER BY idx DESC LIMIT ?2",
        )?;
        let values = params![subject, limit];
        self.collect(&mut statement, values, |row| Ok((unsigned(row.get(3)?), location(row)?)))
    }

    /// What came from the line at a position: positions, and whether only by way of the context.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub(crate) fn children(&self, parent: u64, limit: u32) -> Result<Vec<(u64, bool)>, IndexError> {
        let mut statement =
            self.ask("SELECT child, ambient FROM edges WHERE parent = ?1 LIMIT ?2")?;
        self.collect(&mut statement, params![signed(parent), limit], edge)
    }

    /// What the line at a position came from, as [`Self::children`].
    ///
    /// # Errors
    /// When SQLite refuses.
    pub(crate) fn parents(&self, child: u64, limit: u32) -> Result<Vec<(u64, bool)>, IndexError> {
        let mut statement =
            self.ask("SELECT parent, ambient FROM edges WHERE child = ?1 LIMIT ?2")?;
        self.collect(&mut statement, params![signed(child), limit], edge)
    }

    /// Positions from `first` on of what was allowed and did not happen, because something else that
    /// belonged to it was not allowed.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub(crate) fn withheld(
        &self,
        first: u64,
    ) -> Result<std::collections::HashSet<u64>, IndexError> {
        let (mask, said) = Shape::said_bits(Said::Withheld);
        let mut statement = self.ask(
            "SELECT DISTINCT edges.parent FROM lines JOIN edges ON edges.child = lines.idx
             WHERE lines.idx > ?1 AND lines.shape & ?2 = ?3 AND edges.parent >= ?1",
        )?;
        let values = params![signed(first), mask, said];
        let found = self.collect(&mut statement, values, |row| row.get(0).map(unsigned))?;
        Ok(found.into_iter().collect())
    }

    /// Hands every edge to a child behind `first` to `each`, by child: child, parent, ambient. Going
    /// `back`, every edge to `first` and to children before it, the last child first.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub(crate) fn each_edge(
        &self,
        first: u64,
        back: bool,
        mut each: impl FnMut(u64, u64, bool),
    ) -> Result<(), IndexError> {
        let failed = |error| self.failed(error);
        let among = if back { "<= ?1 ORDER BY child DESC" } else { "> ?1 ORDER BY child" };
        let mut statement =
            self.ask(&format!("SELECT child, parent, ambient FROM edges WHERE child {among}"))?;
        let mut rows = statement.query([signed(first)]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let child: i64 = row.get(0).map_err(failed)?;
            let parent: i64 = row.get(1).map_err(failed)?;
            each(unsigned(child), unsigned(parent), row.get(2).map_err(failed)?);
        }
        Ok(())
    }

    fn ask(&self, question: &str) -> Result<rusqlite::CachedStatement<'_>, IndexError> {
        self.database.prepare_cached(question).map_err(|error| self.failed(error))
    }

    fn collect<T>(
        &self,
        statement: &mut Statement<'_>,
        values: impl rusqlite::Params,
        read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, IndexError> {
        let rows = statement.query_map(values, read).map_err(|error| self.failed(error))?;
        rows.collect::<Result<_, _>>().map_err(|error| self.failed(error))
    }
}

/// A filter as SQL. One condition leads through its index, in order of the log; a plus sign keeps SQLite
/// from taking the index of another one.
fn conditions(filter: &Filter) -> (String, Vec<Value>) {
    let number = |time: Timestamp| Value::Integer(time.unix());
    let text = |text: &String| Value::Text(text.clone());
    let all = [
        ("session = ?", filter.session.as_ref().map(text)),
        (
            // As the partial index has it; the bits of a verdict that is asked for are never 0.
            "shape & 245760 > 0 AND shape & 245760 = ?",
            filter.verdict.map(|verdict| Value::Integer(Shape::verdict_bits(verdict).1)),
        ),
        (
            "shape >= 1073741824 AND shape >= ?",
            filter.severity.map(|level| Value::Integer(Shape::lowest(level))),
        ),
        ("shape & 31 = ?", filter.kind.map(|kind| Value::Integer(Shape::kind_bits(kind).1))),
        ("agent = ?", filter.agent.as_ref().map(text)),
        (
            "shape & 8126464 = ?",
            filter.category.map(|category| Value::Integer(Shape::category_bits(category).1)),
        ),
        ("+time >= ?", filter.since.map(number)),
        ("+time <= ?", filter.until.map(number)),
    ];
    let mut parts = Vec::new();
    let mut values = Vec::new();
    for (condition, value) in all {
        let Some(value) = value else { continue };
        // The first leads, the others are looked up.
        let plain = parts.is_empty() || condition.starts_with('+');
        parts.push(if plain { condition.to_owned() } else { unindexed(condition) });
        values.push(value);
    }
    parts.push("idx < ? AND idx >= ?".to_owned());
    values.push(Value::Integer(filter.below.map_or(i64::MAX, signed)));
    values.push(Value::Integer(filter.from.map_or(0, signed)));
    (parts.join(" AND "), values)
}

/// A condition that no index is taken for.
fn unindexed(condition: &str) -> String {
    let parts = condition.split(" AND ").map(|part| format!("+{part}"));
    parts.collect::<Vec<_>>().join(" AND ")
}

fn edge(row: &rusqlite::Row<'_>) -> rusqlite::Result<(u64, bool)> {
    Ok((unsigned(row.get(0)?), row.get(1)?))
}

fn location(row: &rusqlite::Row<'_>) -> rusqlite::Result<Location> {
    Ok(Location {
        segment: SegmentNumber(row.get(0)?),
        offset: unsigned(row.get(1)?),
        length: unsigned(row.get(2)?),
    })
}

fn row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Option<Row>> {
    let shape: i64 = row.get(4)?;
    let Some(shape) = Shape::unpack(shape) else { return Ok(None) };
    let (index, session) = (unsigned(row.get(3)?), row.get(5)?);
    Ok(Some(Row { index, location: location(row)?, shape, session }))
}

#[cfg(test)]
mod tests {
    use wardkeep_evidence::record::RecordType;
    use wardkeep_guard::verdict::Verdict;

    use super::*;

    #[test]
    fn each_condition_leads_through_its_index_in_the_order_of_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let index = Index::open(folder.path()).unwrap();
        let word = || Some("x".to_owned());
        let cases = [
            (Filter { session: word(), ..Filter::default() }, "lines_session"),
            (Filter { agent: word(), ..Filter::default() }, "lines_agent"),
            (Filter { kind: Some(RecordType::ToolCall), ..Filter::default() }, "lines_kind"),
            (Filter { verdict: Some(Verdict::Deny), ..Filter::default() }, "lines_verdict"),
            (Filter { severity: Some(Severity::High), ..Filter::default() }, "lines_notice"),
            (Filter { session: word(), agent: word(), ..Filter::default() }, "lines_session"),
            (
                Filter { kind: Some(RecordType::ToolCall), agent: word(), ..Filter::default() },
                "lines_kind",
            ),
        ];
        for (filter, name) in cases {
            let (conditions, values) = conditions(&filter);
            let question = format!(
                "EXPLAIN QUERY PLAN SELECT segment, offset, length, idx FROM lines
                 WHERE {conditions} ORDER BY idx DESC LIMIT 5"
            );
            let mut statement = index.database.prepare(&question).unwrap();
            let rows = statement.query_map(rusqlite::params_from_iter(values), |row| row.get(3));
            let plan: Vec<String> = rows.unwrap().map(Result::unwrap).collect();
            let plan = plan.join("; ");
            assert!(plan.contains(name) && !plan.contains("TEMP B-TREE"), "{filter:?}: {plan}");
        }
    }
}
