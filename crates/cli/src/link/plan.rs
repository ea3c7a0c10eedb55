use crate::arguments::LinkRunArguments;
use crate::failure::Failure;
pub(crate) fn plan(arguments: &LinkRunArguments) -> Result<(), Failure> {
    super::run::config(arguments).map(drop)
}
