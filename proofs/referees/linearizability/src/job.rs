//! What a worker has to do in a history, and how that is passed to a process.

/// A broken variant of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// A receiver that returns a message twice.
    Doubles,
    /// A receiver that leaves a message out.
    Loses,
    /// A receiver that returns a message before an older one.
    Reorders,
    /// A sender that reports a message as pushed before it is.
    AnswersEarly,
    /// A successor that pushes the message in which its predecessor was killed.
    Resurrects,
    /// A board's reader that returns an older value after a newer one.
    GoesBack,
}

pub const FAULTS: [Fault; 7] = [
    Fault::None,
    Fault::Doubles,
    Fault::Loses,
    Fault::Reorders,
    Fault::AnswersEarly,
    Fault::Resurrects,
    Fault::GoesBack,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Sender,
    Receiver,
    Writer,
    Reader,
}

const ROLES: [Role; 4] = [Role::Sender, Role::Receiver, Role::Writer, Role::Reader];

/// The work of one worker.
#[derive(Clone, Debug)]
pub struct Job {
    /// Name of the queue or board.
    pub name: String,
    pub worker: usize,
    pub role: Role,
    pub seed: u64,
    /// Number of operations; a receiver pops what is left afterwards.
    pub operations: usize,
    /// Phases of the history in which it works: see `phases`.
    pub first_phase: u64,
    pub last_phase: u64,
    pub producer: usize,
    /// Words of a message.
    pub words: usize,
    /// The first value that it pushes or writes.
    pub first_value: u64,
    /// The call in which it stops for its tracer, which kills it.
    pub trap: Option<usize>,
    pub is_successor: bool,
    pub inherited: Option<u64>,
    pub fault: Fault,
}

fn number(option: Option<u64>) -> u64 {
    option.map_or(0, |value| value + 1)
}

impl Job {
    /// Returns the job as a line of words.
    pub fn to_line(&self) -> String {
        let Self { name, worker, seed, operations, first_phase, last_phase, producer, first_value, .. } =
            self;
        let role = ROLES.iter().position(|role| *role == self.role).unwrap_or_default();
        let fault = FAULTS.iter().position(|fault| *fault == self.fault).unwrap_or_default();
        let trap = number(self.trap.map(|call| call as u64));
        let (inherited, is_successor) = (number(self.inherited), u8::from(self.is_successor));
        let words = self.words;
        format!(
            "{name} {worker} {role} {seed} {operations} {first_phase} {last_phase} {producer} {first_value} {trap} \
             {is_successor} {inherited} {fault} {words}"
        )
    }

    /// Reads a line of [`Job::to_line`].
    pub fn from_line(line: &str) -> Option<Self> {
        let (name, numbers) = line.split_once(' ')?;
        let numbers: Vec<u64> = numbers.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
        let numbers: [u64; 13] = numbers.try_into().ok()?;
        let [worker, role, seed, operations, first_phase, last_phase, producer, first_value, trap, ..] =
            numbers;
        Some(Self {
            name: name.into(),
            worker: worker as usize,
            role: *ROLES.get(role as usize)?,
            seed,
            operations: operations as usize,
            first_phase,
            last_phase,
            producer: producer as usize,
            words: numbers[12] as usize,
            first_value,
            trap: trap.checked_sub(1).map(|call| call as usize),
            is_successor: numbers[9] == 1,
            inherited: numbers[10].checked_sub(1),
            fault: *FAULTS.get(numbers[11] as usize)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_survives_its_line() {
        let job = Job {
            name: "name".into(),
            worker: 3,
            role: Role::Reader,
            seed: u64::MAX,
            operations: 7,
            first_phase: 1,
            last_phase: 3,
            producer: 2,
            words: 16,
            first_value: 2_001,
            trap: Some(0),
            is_successor: true,
            inherited: Some(0),
            fault: Fault::GoesBack,
        };
        assert_eq!(format!("{job:?}"), format!("{:?}", Job::from_line(&job.to_line()).unwrap()));
        assert!(Job::from_line("name 1 2").is_none());
    }
}
