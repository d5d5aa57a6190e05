//! `export`: the manifests of a set, as they were last applied.

use std::path::Path;
use std::slice;

use crate::cli::{Export, GlobalFlags};
use crate::compare::ownership::member_field_manager;
use crate::error::{Error, ErrorKind};
use crate::exit::Exit;
use crate::model::set::Set;
use crate::model::text::{counted, shell_word};
use crate::read::found_set::{self, FoundSet, Visibility};
use crate::report::{self, Device, Format, ManifestText, Style, apply_command, manifest_file_text};
use crate::session::export_members::{ExportSource, PlannedChanges};
use crate::session::set_to_show::{ExistingSet, SetAndPlace, read_existing_set};
use crate::session::signals::{listen, run_unless_interrupted};
use crate::session::write_exported_files;
use crate::settings::{self, SetReference};

/// Runs `export`.
pub(super) async fn run(arguments: &Export, shared: &GlobalFlags) -> Result<Exit, Error> {
    let style = settings::read_style(shared);
    let reference = SetReference::new(&arguments.set)?;
    if let Some(directory) = &arguments.out {
        check_out_directory(directory, style)?;
    }
    let exported = run_unless_interrupted(&listen(), read_and_export(&reference, arguments, shared)).await?;
    for line in &exported.left_out {
        report::print_note(line, style);
    }
    match &arguments.out {
        None => print_manifests(&exported, style),
        Some(directory) => write_manifests(directory, &exported, style)?,
    }
    Ok(Exit::Done)
}

/// Checks that the files can be written to this directory, before anything is read.
fn check_out_directory(directory: &Path, style: Style) -> Result<(), Error> {
    if !matches!(style.format, Format::Lines | Format::Yaml) {
        return Err(Error::usage(
            "-o cannot be combined with --out, except -o yaml: the files are always YAML",
            "omit -o, or print the manifests without --out",
        ));
    }
    write_exported_files::check_directory_has_no_manifests(directory)
}

fn print_manifests(exported: &SetExport, style: Style) {
    let SetExport {
        set,
        flags,
        manifests,
        left_out,
    } = exported;
    let file = manifest_file_text(&set.parent, flags, left_out, manifests);
    report::print_exported_manifests(manifests, &file, style);
    warn_of_secrets_on_terminal(manifests, style);
}

/// Writes a file for each manifest, and says how to apply them.
fn write_manifests(directory: &Path, exported: &SetExport, style: Style) -> Result<(), Error> {
    let SetExport {
        set,
        flags,
        manifests,
        ..
    } = exported;
    if manifests.is_empty() {
        let note = format!("{} has no members: no file is written", set.parent);
        report::print_note(&note, style);
        return Ok(());
    }
    write_exported_files::write_directory(directory, manifests)?;
    let directory = shell_word(&directory.to_string_lossy());
    let command = apply_command(&set.parent, &directory, flags);
    let count = counted(manifests.len(), "manifest");
    report::print_note(&format!("{count} written; apply them with `{command}`"), style);
    Ok(())
}

/// Warns that values of Secrets were printed to a terminal, whose scrollback others may read.
fn warn_of_secrets_on_terminal(manifests: &[ManifestText], style: Style) {
    let secrets = manifests.iter().filter(|manifest| manifest.is_secret()).count();
    let is_shown = matches!(style.output, Device::Terminal { .. }) && style.format != Format::Names;
    if secrets > 0 && is_shown {
        let count = counted(secrets, "Secret");
        report::print_warning(
            &format!("the values of {count} are on the screen; write them to files with --out DIR"),
            style,
        );
    }
}

/// The manifests of a set, as they are exported.
struct SetExport {
    set: Set,
    /// The flags for an apply of the manifests.
    flags: Vec<String>,
    manifests: Vec<ManifestText>,
    /// A line for each thing that is not in the manifests, or may not be.
    left_out: Vec<String>,
}

async fn read_and_export(
    reference: &SetReference,
    arguments: &Export,
    shared: &GlobalFlags,
) -> Result<SetExport, Error> {
    // Only commands that print a document read this after an error.
    let mut unused_progress = SetAndPlace::from_name(&reference.name);
    let ExistingSet {
        mut cluster,
        named,
        parent,
    } = read_existing_set(reference, shared, &mut unused_progress).await?;
    let found = FoundSet::new(named.set.parent.clone(), &parent);
    cluster
        .judge_missing_kinds_without_waiting(slice::from_ref(&found))
        .await;
    // Members were not listed yet. Not whole: the record is unreadable, or names a kind that discovery does not list.
    // The export would lack the objects of that kind.
    if found.determine_visible_part_of_scope(&cluster.discovery) != Visibility::Whole {
        let parent_key = &named.set.parent;
        let text = format!(
            "{parent_key}: not exported: its record is faulty, or names a kind that the server does not list"
        );
        let hint = format!("see `kubectl applyset verify {}`", parent_key.shell_arguments());
        return Err(Error::new(ErrorKind::Cluster, text).with_hint(hint));
    }
    let tooling = found
        .recorded()
        .map_or(&named.set.tooling, |record| &record.tooling);
    let chosen = arguments.field_manager.as_deref();
    let manager = chosen.unwrap_or_else(|| member_field_manager(tooling));
    let no_changes = PlannedChanges::default();
    let set = Set {
        parent_uid: Some(parent.uid.clone()),
        ..named.set.clone()
    };
    let exported = ExportSource {
        cluster: &cluster,
        set: &set,
        parent_resource: &named.resource,
        places: &found_set::determine_places_of_sets(slice::from_ref(&found), &cluster.discovery),
        field_manager: manager,
        concurrency: usize::from(shared.concurrency),
    }
    .export(&no_changes)
    .await?;
    let now = cluster.server.now();
    let notes_on_running_runs = parent.running.iter().map(|run| {
        let began = run.describe_beginning(now);
        format!("{run} began {began} and had not ended: the set may be exported in part.")
    });
    Ok(SetExport {
        set,
        flags: write_exported_files::apply_flags(tooling, manager, &exported.manifests, &shared.connection),
        left_out: notes_on_running_runs.chain(exported.left_out).collect(),
        manifests: exported.manifests,
    })
}
