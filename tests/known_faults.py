"""
Faults that others' users reported of programs of this kind, and what keeps each from happening here.

Of the chapters that are about archives and state (B), whose skill it is (C), reading and writing skills (D), and the
service and the operating system (J). A fault is named by its public report (repository#number); it has tests that fail
when it comes back, or a sentence why it cannot happen. `tests/test_known_faults.py` holds the table to what is there.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["KNOWN_FAULTS", "Fault"]


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: its chapter's id, the report, what went wrong there, tests, and *cannot*: why it cannot happen."""

    id: str
    report: str
    what: str
    tests: tuple[str, ...] = ()
    cannot: str = ""


_LIB = "tests/adapters/test_library.py::"
_APPLY = "tests/passes/test_apply.py::"
_HEADER = "tests/core/test_header.py::"
_OWNER = "tests/core/test_ownership.py::"
_PROMISES = "tests/e2e/test_promises.py::"
_BACK = "tests/passes/test_bring_back.py::"
_HOSTILE = "tests/e2e/test_hostile_campaign.py::"
_HERE = "tests/e2e/test_known_faults_e2e.py::"

KNOWN_FAULTS: tuple[Fault, ...] = (
    # B. Archive, restore, snapshots, state files
    Fault("B030", "NousResearch/hermes-agent#26655", "the report said archived, the files were deleted",
          (_PROMISES + "test_2_and_3_unmanaged_skills_stay_and_nothing_is_lost",
           _APPLY + "test_archive_moves_the_package_whole", _HOSTILE + "test_attacks_at_a_place")),
    Fault("B032", "NousResearch/hermes-agent#83580", "restore did not take the names that the list printed",
          (_BACK + "test_three_of_one_name",
           _PROMISES + "test_each_archived_package_of_a_name_is_listed_and_can_be_restored")),
    Fault("B033", "NousResearch/hermes-agent#17942", "a skill archived out of a category was not found again",
          (_APPLY + "test_restore_puts_it_back_under_its_category",)),
    Fault("B034", "tigerless-labs/autoharness#114", "a second archive of one name wiped the first",
          (_APPLY + "test_the_archive_never_overwrites", _BACK + "test_three_of_one_name")),
    Fault("B036", "NousResearch/hermes-agent#109331", "a backup with links could not be restored",
          ("tests/passes/test_backup.py::test_links_stay_links_and_hard_links_are_files",)),
    Fault("B038", "NousResearch/hermes-agent#18795", "two processes that counted uses at once lost counts",
          ("tests/e2e/test_lost_state.py::test_many_processes_at_the_first_start_share_one_database",),
          "there is no counter to lose: a use is a row with its record's key, and is counted when it is asked for"),
    Fault("B039", "nesquena/hermes-webui#3008", "times of another form in a shared usage file broke everything",
          ("tests/core/test_hermes_files.py::test_odd_times_cost_themselves",
           "tests/fuzz/test_corpus.py::test_changes_of_kept_inputs")),
    Fault("B040", "NousResearch/hermes-agent#97243", "a run by hand and a scheduled one ran together",
          ("tests/adapters/test_lock.py::test_a_second_holder_waits_and_is_then_told_who_holds_it",
           "tests/adapters/test_lock.py::test_it_dies_with_its_holder",
           "tests/passes/test_processes.py::test_two_at_once",
           "tests/test_daemon.py::test_a_second_daemon_is_kept_out")),
    Fault("B041", "NousResearch/hermes-agent#17931", "archived skills were still listed and loaded",
          (_LIB + "test_search_stops_at_a_skill_and_at_foreign_folders",)),
    Fault("B042", "NousResearch/hermes-agent#18169", "what a version did not know vanished from the state",
          (_APPLY + "test_unknown_keys_of_the_decisions_are_carried_along",)),
    Fault("B043", "QwenLM/qwen-code#7846", "damaged state read as an empty one",
          ("tests/e2e/test_lost_state.py::test_unreadable_decisions_stop_everything_until_they_are_mended",
           "tests/e2e/test_lost_state.py::test_damage_anywhere_is_mended_by_the_second_command",
           _PROMISES + "test_9_an_unreadable_ownership_file_protects_the_library")),
    Fault("B044", "NousResearch/hermes-agent#95415", "a skill that came back from outside was taken for a learned one",
          (_HERE + "test_a_copy_of_an_archived_skill_that_comes_back_is_known_again",)),
    Fault("B045", "Lexus2016/hermes-agent-evolution#117", "a run that was killed left no trace",
          (_PROMISES + "test_7_a_run_that_was_killed_leaves_its_trace",
           "tests/passes/test_processes.py::test_killed_at_random_instants",
           "tests/passes/test_umbrella_crash.py::test_a_kill_at_some_steps_leaves_before_or_after")),
    # C. Whose skill it is
    Fault("B046", "NousResearch/hermes-agent#20273", "skills of the vendor were rewritten; only a prompt forbade it",
          (_OWNER + "test_protected_whatever_else_is_said", _APPLY + "test_the_writer_asks_by_itself",
           "tests/passes/test_umbrella_hostile.py::test_any_reply_leaves_the_library_whole")),
    Fault("B047", "NousResearch/hermes-agent#103098", "built-in skills were archived by default",
          (_OWNER + "test_protected_whatever_else_is_said",
           _PROMISES + "test_2_and_3_unmanaged_skills_stay_and_nothing_is_lost")),
    Fault("B050", "NousResearch/hermes-agent#47688", "skills of a shared outside folder were moved and edited",
          (_OWNER + "test_protected_whatever_else_is_said", _LIB + "test_links_out_of_the_library")),
    Fault("B051", "NousResearch/hermes-agent#92993", "pinning said success and did nothing",
          (_HERE + "test_a_pin_says_what_is_true_now",
           _PROMISES + "test_9_a_pin_that_the_host_cannot_be_told_is_refused")),
    Fault("B052", "NousResearch/hermes-agent#119275", "hand-made skills were labelled as an agent's by elimination",
          (_OWNER + "test_only_the_hosts_marker_hands_over", _OWNER + "test_the_table_is_whole")),
    Fault("B053", "foryourhealth111-pixel/Vibe-Skills#309", "removing a link removed what it led to",
          (_APPLY + "test_archiving_a_link_moves_the_link", _LIB + "test_dead_links_and_circles",
           _HOSTILE + "test_attacks_at_a_place")),
    Fault("B054", "NousResearch/hermes-agent#8293", "one walk followed links, another did not",
          (_LIB + "test_links_to_one_skill_are_one_skill",
           "tests/e2e/test_year.py::test_use_through_a_link_is_use_of_the_package")),
    # D. Skill loader and writer
    Fault("B055", "mistralai/mistral-vibe#672", "a colon in a description made the skill vanish",
          (_HEADER + "test_plain_values_are_mended", _LIB + "test_a_loose_file_with_a_broken_header_is_listed")),
    Fault("B056", "NousResearch/hermes-agent#117736", "the writer refused what the reader took",
          (_HEADER + "test_editing_beside_an_old_fault", _HEADER + "test_edit_refused_for_an_old_fault",
           "tests/fuzz/test_corpus.py::test_changes_of_kept_inputs")),
    Fault("B057", "NousResearch/hermes-agent#65277", "a byte-order mark hid the header",
          (_HEADER + "test_line_ends_and_byte_order_mark",)),
    Fault("B058", "Tencent/teamai-cli#378", "CRLF files got a second header at every sync",
          (_HEADER + "test_line_ends_and_byte_order_mark", _HEADER + "test_no_header_is_added")),
    Fault("B059", "agegr/pi-web#690", "fences with blanks were no fences", (_HEADER + "test_fences_with_blanks",)),
    Fault("B060", "agentscope-ai/QwenPaw#4797", "one bad skill failed all",
          (_LIB + "test_one_bad_skill_hides_no_other",)),
    Fault("B061", "openclaw/openclaw#110479", "a header without its end made a skill disappear",
          (_HEADER + "test_unterminated", _LIB + "test_bad_files_say_why")),
    Fault("B064", "HKUDS/OpenSpace#104", "values changed type and came back altered",
          (_HEADER + "test_values_stay_as_written",)),
    Fault("B065", "PrefectHQ/fastmcp#4701", "block texts were read as one sign", (_HEADER + "test_block_scalars",)),
    Fault("B066", "cashfree/agent-skills#32", "what was written was too long for some agents",
          ("tests/core/umbrella/test_naming.py::test_a_long_description_is_cut_at_a_sentence",
           "tests/passes/test_umbrella_hostile.py::test_any_reply_leaves_the_library_whole")),
    Fault("B068", "vercel-labs/agent-skills#330", "shown under one name, looked up under another",
          (_LIB + "test_both_names_find_a_skill", "tests/core/test_skill.py::test_names_agree")),
    Fault("B069", "vercel-labs/skills#897", "one of two skills of one name replaced the other",
          (_LIB + "test_categories",
           "tests/core/test_usage.py::test_two_categories_with_one_name_both_count_unless_a_path_tells")),
    Fault("B070", "openai/codex#22275", "a SKILL.md in node_modules became a skill",
          (_LIB + "test_search_stops_at_a_skill_and_at_foreign_folders",
           "tests/core/test_package.py::test_samples_are_no_nested_skills")),
    Fault("B071", "anthropics/claude-code#16983", "skill.md is found on one system and not on another",
          (_LIB + "test_spellings_of_the_file",)),
    Fault("B073", "NousResearch/hermes-agent#12351", "names in other scripts were scrubbed to nothing",
          ("tests/core/umbrella/test_naming.py::test_different_names_stay_different",
           "tests/passes/test_umbrella_hostile.py::test_two_names_in_another_script_become_two_umbrellas")),
    Fault("B074", "NousResearch/hermes-agent#7390", "a long header was cut",
          (_HEADER + "test_long_header_is_read_and_a_longer_one_refused",)),
    Fault("B076", "NousResearch/hermes-agent#38707", "a name led out of the skills folder",
          ("tests/core/umbrella/test_naming.py::test_a_name_that_leads_somewhere_is_refused",
           _APPLY + "test_paths_out_of_the_package_are_refused", _HOSTILE + "test_a_model_that_means_harm",
           "tests/adapters/test_race_process.py::test_folders_swapped_for_links_by_another_process")),
    Fault("B077", "NousResearch/hermes-agent#68369", "valid UTF-8 could not be read in another locale",
          ("tests/cli/test_main.py::test_a_plain_locale_is_no_hindrance", _LIB + "test_other_scripts_are_fine")),
    Fault("B078", "NousResearch/hermes-agent#79793", "on Windows a rename failed while another had the file open",
          cannot="curatord runs on POSIX systems only, where a rename does not mind readers"),
    # J. Service, container, operating system
    Fault("B150", "OHF-Voice/wyoming-piper#47", "stopping took a minute and ended with a kill",
          ("tests/e2e/test_service_manager.py::test_stopping_is_told_and_soon_over",
           "tests/e2e/test_service_manager.py::test_a_stop_while_a_model_is_silent_is_heard",
           "tests/e2e/test_service_manager.py::test_a_stop_in_the_first_scan_is_heard")),
    Fault("B151", "benoitc/gunicorn#3748", "the watchdog killed a healthy daemon, or none was fed",
          ("tests/e2e/test_service_manager.py::test_ready_comes_after_the_first_scan",
           "tests/test_daemon.py::test_a_hung_worker_feeds_no_watchdog")),
    Fault("B152", "pinchtab/pinchtab#554", "without HOME the state went to the root or into a folder named ~",
          ("tests/cli/test_main.py::test_a_bare_environment_is_enough",
           "tests/adapters/test_discover.py::test_a_home_that_is_none_is_looked_up")),
    Fault("B153", "ryantm/agenix#372", "launchd restarted a failing agent without end",
          ("tests/core/service/test_files.py::test_the_agent_is_started_again_after_failures_only_and_seldom",)),
    Fault("B154", "OpenHands/OpenHands#16511", "a container of another user wrote nothing and stayed up",
          ("tests/packaging/test_sidecar.py::test_a_state_folder_of_another_user_ends_it_at_once",)),
    Fault("B155", "systemd/systemd#29798", "hardening made the folders read-only, and the service failed oddly",
          ("tests/adapters/test_library.py::test_a_read_only_library_is_observed",
           "tests/e2e/test_doctor.py::test_what_a_service_could_not_see_is_told")),
    Fault("B156", "Soul-Brews-Studio/maw-js#2012", "a full disk cut the state to nothing",
          ("tests/passes/test_faults.py::test_a_really_full_disk",
           "tests/passes/test_faults.py::test_a_full_state_folder",
           "tests/passes/test_faults.py::test_no_space_at_every_effect")),
    Fault("B157", "brockamer/findajob#862", "a move between file systems failed",
          ("tests/passes/test_crash.py::test_across_file_systems_killed_at_every_effect",)),
    Fault("B158", "David-Crty/databasement#344", "the database was locked between service and command line",
          (_HERE + "test_many_commands_at_once_meet_no_locked_database",)),
)  # fmt: skip
