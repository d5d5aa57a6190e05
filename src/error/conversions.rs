//! Turns the errors of single stages into those that end a run.

use super::Error;
use crate::manifest::desired::DesiredError;
use crate::plan::MemberScopeUnknown;
use crate::read::{ContentsError, FailedList, ListError, ListTarget, ParentError, ReadError, UnsettledError};

impl From<DesiredError> for Error {
    fn from(error: DesiredError) -> Self {
        match error {
            DesiredError::InvalidObjects(invalid) => Self::InvalidObjects(invalid),
            terminating @ DesiredError::DefinitionTerminating { .. } => {
                Self::DefinitionTerminating(terminating.to_string())
            }
            unknowable @ DesiredError::KindUnknowable { .. } => Self::KindUnknowable(unknowable.to_string()),
        }
    }
}

impl From<MemberScopeUnknown> for Error {
    fn from(error: MemberScopeUnknown) -> Self {
        match error {
            MemberScopeUnknown::Refused(refusals) => Self::Refused(refusals),
            unknowable @ MemberScopeUnknown::KindUnknowable { .. } => {
                Self::KindUnknowable(unknowable.to_string())
            }
            unlisted @ MemberScopeUnknown::NotListed { .. } => Self::KindNotServed(unlisted.to_string()),
        }
    }
}

impl From<UnsettledError> for Error {
    fn from(error: UnsettledError) -> Self {
        match error {
            UnsettledError::Discovery(error) => Self::Discovery(error),
            unread @ UnsettledError::Unread { .. } => Self::KindUnknowable(unread.to_string()),
            expected @ UnsettledError::StillExpected { .. } => Self::KindNotServed(expected.to_string()),
        }
    }
}

impl From<ContentsError> for Error {
    fn from(error: ContentsError) -> Self {
        match error {
            ContentsError::Unsettled(error) => error.into(),
            ContentsError::List { place, error } => (place, error).into(),
        }
    }
}

impl From<(ListTarget, ListError)> for Error {
    fn from(failed: (ListTarget, ListError)) -> Self {
        Self::List(FailedList::from(failed))
    }
}

impl From<ParentError> for Error {
    fn from(error: ParentError) -> Self {
        Self::Usage {
            message: error.to_string(),
            hint: error.hint(),
        }
    }
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Unsettled(error) => error.into(),
            ReadError::Scope(error) => error.into(),
            ReadError::Contents(error) => error.into(),
            ReadError::Object { what, error } => Self::Read { what, error },
            ReadError::List(failed) => Self::List(failed),
            ReadError::Refused(refusals) => Self::Refused(refusals),
            ReadError::MissingNamespaces(missing) => Self::MissingNamespaces(missing),
            ReadError::MissingDependencies(missing) => Self::MissingDependencies(missing),
            ReadError::MembersUnseen { parent, hidden } => Self::MembersUnknown { parent, hidden },
            ReadError::MembersWithoutParent { parent, left_out } => {
                Self::MembersWithoutParent { parent, left_out }
            }
            ReadError::Parent(error) => error.into(),
            selector @ ReadError::Selector { .. } => Self::Usage {
                message: selector.to_string(),
                hint: "write -l app=web,tier!=cache, as for `kubectl get`".to_owned(),
            },
            unknowable @ ReadError::ResourceUnknowable { .. } => Self::KindUnknowable(unknowable.to_string()),
            expected @ ReadError::KindNotServed { .. } => Self::KindNotServed(expected.to_string()),
        }
    }
}
