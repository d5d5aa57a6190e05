//! How the program ends, and the exit code of each way.

/// The ways in which the program ends, each with an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Everything was done.
    Done,
    /// Something failed while writing, or is not as `verify` or `view --wait` wants it.
    Failed,
    /// `diff` has found differences.
    Different,
    /// The command line or the manifests are wrong.
    Usage,
    /// A safety check refused the run, or the user did not confirm it.
    Refused,
    /// The server could not be reached, or it refused a request.
    Cluster,
    /// The user stopped the run.
    Interrupted,
}

impl Exit {
    /// Returns the exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed | Self::Different => 1,
            Self::Usage => 2,
            Self::Refused => 3,
            Self::Cluster => 4,
            Self::Interrupted => 130,
        }
    }
}
