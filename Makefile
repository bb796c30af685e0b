# Every target but help and clean first makes .venv where it is missing or older than what it installs.

# Options, the same for every target (text after ## is what `make help` prints):
PROTOCOL ?= ## paper (full settings; retina-mnist and retina-mnist-fsvi call them own), short or smoke; without it the table's first
SEEDS    ?= ## seeds or splits: how many (5), a range (0-4) or a list (0,3); without it all
EXECUTOR ?= ## where runs are trained: inprocess, pool or slurm; without it pool
WORKERS  ?= ## how many processes work at once; without it one per GPU or core
SLURM    ?= ## for EXECUTOR=slurm, options as partition=gpu time=8:00:00; also from slurm.toml, see docs/cluster.md
METHOD   ?= ## for table-<name>, a method that the table does not have: one row more
WAIT     ?= ## for EXECUTOR=slurm, 1: wait until every run is over, then print the table
DRY_RUN  ?= ## for table-<name> and tables, 1: show what would be run, and run nothing
ANYWAY   ?= ## 1: train here also what would take more than a day
STRICT   ?= ## 1: fail where data cannot be fetched, also if there are records to show
FIGURES  ?= ## for figures, names and options as for python -m reports figures: digits-roc --size column --title off
N        ?= ## for verify, how many records; without it 12
PYTHON   ?= python3## the interpreter that makes .venv, 3.11 or later
OPTIONS := PROTOCOL SEEDS EXECUTOR WORKERS SLURM METHOD WAIT DRY_RUN ANYWAY STRICT FIGURES N PYTHON

# A misspelt option would otherwise be ignored, and a long run started in its place.
given := $(foreach v,$(.VARIABLES),$(if $(filter command,$(origin $v)),$v))
unknown := $(filter-out $(OPTIONS) MAKEFLAGS MFLAGS %_NUM_THREADS FVI_%,$(given))
$(if $(unknown),$(error unknown option $(unknown); the options are $(OPTIONS)))

ordered := $(filter $(OPTIONS),$(given))

# Values are plain text: make expands nothing in them, and recipes take them from the environment, so that no shell
# reads them as commands.
given := $(foreach v,$(OPTIONS),$(if $(filter command environment,$(origin $v)),$v)) \
	$(filter-out MAKEFLAGS MFLAGS $(OPTIONS),$(given))
$(foreach v,$(sort $(OPTIONS) $(given)),$(eval override $v := $$(value $v)))
export PROTOCOL SEEDS EXECUTOR WORKERS SLURM METHOD FIGURES N

# One thread for each process: the pool keeps every core busy, and records do not depend on the core count.
export OMP_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
# The C library keeps the memory that tensors free: asking the system for it again at every step costs more than small steps do.
export MALLOC_TRIM_THRESHOLD_ ?= 2000000000
export MALLOC_MMAP_THRESHOLD_ ?= 33554432

SHELL := /bin/bash
VENV := .venv
READY := $(VENV)/.ready
RUN := $(VENV)/bin/python -m

run_options := $${PROTOCOL:+--protocol "$$PROTOCOL"} $${SEEDS:+--seeds "$$SEEDS"}
also := $${METHOD:+--also "$$METHOD"}
dry_run := $(if $(filter-out 0 no,$(DRY_RUN)),--dry-run)
# An option that no target of this call takes would be ignored: all seeds would be shown in place of three. All targets
# must take DRY_RUN, also from the environment: others would do what was only to be shown.
training := table-% tables
for_PROTOCOL := $(training) figures status
for_SEEDS := demo $(for_PROTOCOL)
for_WORKERS := demo $(training) verify test
for_METHOD := $(training)
for_FIGURES := figures
for_N := verify
$(foreach v,EXECUTOR SLURM WAIT DRY_RUN ANYWAY STRICT,$(eval for_$v := $(training)))
refused = $(if $(filter $(for_$v),$(MAKECMDGOALS)),$(if $(filter DRY_RUN,$v),$(filter-out $(for_$v),$(MAKECMDGOALS))),$v)
$(foreach v,$(if $(MAKECMDGOALS),$(sort $(ordered) DRY_RUN)),$(if $(filter-out 0 no,$($v)),$(if $(for_$v),\
	$(if $(refused),$(error $v is for the targets $(subst %,<name>,$(for_$v)); leave it out)))))
strict := $(filter-out 0 no,$(STRICT))
anyway := $(if $(filter-out 0 no,$(ANYWAY)),--anyway)
executor_options := $${EXECUTOR:+--executor "$$EXECUTOR"} $${WORKERS:+--workers "$$WORKERS"} "$${slurm[@]}" \
	$(if $(filter-out 0 no,$(WAIT)),--wait) $(dry_run) $(anyway)

# What this make was called with, for messages that say how to go on.
quoted = '$(subst ','\'',$1)'
command = make $(call quoted,$@) $(foreach v,$(given),$(if $($v),$(call quoted,$v=$($v))))

.PHONY: help demo tables figures page paper docs findings coverage data status verify artifacts-pack test check bench slurm-up slurm-down clean
.DEFAULT_GOAL := help

help: ## list targets and options
	@echo 'Targets:'
	@awk -F ':.*## ' '/^[a-z%-]+:.*## / {sub("%", "<name>", $$1); printf "  %-16s%s\n", $$1, $$2}' Makefile
	@echo 'Options, as in `make table-digits PROTOCOL=smoke SEEDS=2`:'
	@awk -F ' *[?]=.*## ' '/^[A-Z_]+ *[?]=/ {printf "  %-14s%s\n", $$1 "=", $$2}' Makefile

demo: $(READY) ## train three methods from nothing, in under a minute, and show their numbers beside the recorded ones
	@$(RUN) benchmarks demo $${SEEDS:+--seeds "$$SEEDS"} $${WORKERS:+--workers "$$WORKERS"}

# $1: tables, $2: the report on them. Status 1: some runs failed; the report is printed all the same, then make fails.
# Status 3: runs are on their way on a cluster; there is nothing to report yet, and nothing is wrong.
# Status 4: nothing was trained, since it would take days; the run has printed what there is, and the ways on.
# Status 5: runs wait for data that cannot be fetched, and there are records to report on.
# A signal that ends make reaches at most this shell: it hands it on, and waits until the sweep has saved what it can.
define run_then_report
slurm=(); set -f; for option in $$SLURM; do slurm+=(--slurm "$$option"); done; \
sweep= stopped=; trap 'stopped=1; $${sweep:+kill $$sweep}' TERM HUP; trap : INT QUIT; \
(trap - INT QUIT; FVI_MAKE=$$PPID exec $(RUN) benchmarks run $1 $(run_options) $(executor_options)) <&0 & sweep=$$!; \
$${stopped:+kill $$sweep}; while wait $$sweep; status=$$?; kill -0 $$sweep 2>/dev/null; do :; done; sweep=; \
if [ $$status -eq 3 ]; then exit 0; fi; \
if [[ $$status == [015] && -z '$(dry_run)' ]]; then $(RUN) reports $2 $(run_options) || exit; fi; \
if [[ $$status == 5 && -z '$(strict)' ]]; then exit 0; fi; \
exit $$status
endef

table-%: export TABLE = $*
table-% tables: export FVI_COMMAND = $(command)

table-%: $(READY) ## train what one table still misses, then print it: table-digits, table-uci, table-pequignot2020-5
	@$(call run_then_report,"$$TABLE" $(also),table "$$TABLE" $(also))

tables: $(READY) ## the same for every table that has the protocol
	@if [ -n "$$METHOD" ]; then echo "METHOD is for one table: make table-<name> METHOD=..." >&2; exit 2; fi; \
	listed=$$($(RUN) benchmarks tables) || exit; \
	names=$$(awk -F '  +' 'BEGIN {p = ENVIRON["PROTOCOL"]} \
		NR > 1 && (p == "" || index(" " $$2 " ", " " p " ")) {print $$1}' <<< "$$listed"); \
	if [ -z "$$names" ]; then echo "no table has the protocol '$$PROTOCOL':" >&2; echo "$$listed" >&2; exit 2; fi; \
	$(call run_then_report,$$names,tables)

figures: $(READY) ## draw every figure again from results/, without training
	@set -f; $(RUN) reports figures $(run_options) $$FIGURES

page: $(READY) ## a site of every table, method and figure, to look at: reports/output/page/index.html
	@$(RUN) reports page

paper: $(READY) ## one PDF of every table, figure and method, and of what differs and why: reports/output/paper/paper.pdf
	@$(RUN) reports paper

docs: $(READY) ## page of the library's public names, with an example of each: reports/output/page/api/index.html
	@$(RUN) tools.api

findings: $(READY) ## which claims of the papers survive, by their own numbers and by the records: docs/findings.md
	@$(RUN) reports findings

coverage: $(READY) ## per paper and table: published cells, those with records, those reproduced
	@$(RUN) reports coverage

data: $(READY) ## fetch every data set that can be fetched, and say which could not
	@$(RUN) datasets fetch

status: $(READY) ## runs done, failed, running, stale and missing, reasons of failures, and what could not be stored
	@$(RUN) benchmarks status $(run_options)

verify: $(READY) ## train a random sample of the records again, N of them, and say whether the numbers are the same
	@$(RUN) benchmarks verify $${N:+--n "$$N"} $${WORKERS:+--workers "$$WORKERS"}

artifacts-pack: $(READY) ## archives of the predictions and parameters in .state that records have, for FVI_ARTIFACTS=
	@$(RUN) benchmarks artifacts pack

test: $(READY) ## every test, in parallel
	@$(RUN) pytest -n "$${WORKERS:-logical}" --dist worksteal

check: $(READY) ## formatter, linter and type checker, changing nothing
	@$(VENV)/bin/ruff format --check --quiet . || { echo 'not formatted: .venv/bin/ruff format .' >&2; exit 1; }
	@$(VENV)/bin/ruff check --quiet .
	@$(VENV)/bin/mypy

bench: $(READY) ## time training steps and the runner itself, beside their goals
	@$(RUN) tools.cost

slurm-up: $(READY) ## start a small SLURM cluster on this machine, as root, and print the line that makes it known
	@$(RUN) tools.cluster up

slurm-down: $(READY) ## end it and its jobs
	@$(RUN) tools.cluster down

clean: ## remove .venv and caches; results/ and .state/ stay
	rm -rf $(VENV) *.egg-info .pytest_cache .hypothesis .ruff_cache .mypy_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Where Python may not keep what it compiles, every command would compile the same libraries for seconds.
compiled := $(if $(value PYTHONDONTWRITEBYTECODE),--compile-bytecode)

$(READY): export INTERPRETER = $(PYTHON)
$(READY): pyproject.toml constraints.txt
	@"$$INTERPRETER" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	echo "Python 3.11 or later is needed to make $(VENV), found $$("$$INTERPRETER" --version 2>&1);" \
	     "name another interpreter: make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo 'Making $(VENV) (once; a few GB of packages)'
	@[ ! -L $(VENV) ] || rm $(VENV)  # the environment of another checkout stays as it is
	@"$$INTERPRETER" -m venv --clear $(VENV)
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt uv
	@$(VENV)/bin/uv pip install --quiet -p $(VENV)/bin/python -c constraints.txt $(compiled) -e '.[suite,check,docs,test]'
	@echo "$(CURDIR)" > "$$($(VENV)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/suite.pth"
	@$(VENV)/bin/python -c 'from benchmarks.commands.parts import text; text()'
	@touch $@
