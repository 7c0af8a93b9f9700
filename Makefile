# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Friendly names for what meson, tools/ and tests/ do. `make` builds.

BUILD ?= build
QUICK = unit,sim,static,abi,loop,platform,-slow
SANITIZED = unit,sim,loop,-slow
# What .ci/run has time for besides: README says what is left to check-all.
CI = $(BUILD):host,net,ci,-long build-asan:unit,sim,-slow \
	build-tsan:nic,os,ring,stress,-slow
# for how long each long test runs
export SOAK_SECONDS = 10

all: $(BUILD)/build.ninja
	@ninja --quiet -C $(BUILD) $(TARGETS)

demo: need-demo all
	demo/run $(BUILD)
check: need-check all
	tools/run-tests $(BUILD):$(QUICK)
check-ci: need-check need-check-all need-interop setup-asan setup-tsan
	tools/run-tests $(CI)
check-all: need-check need-check-all need-interop all \
		setup-asan setup-tsan setup-fuzz
	tools/run-tests $(BUILD):slow,host,net,interop,soak,-long \
		build-fuzz:fuzz \
		build-asan:$(SANITIZED) build-tsan:$(SANITIZED)
check-interop: need-check need-interop all
	tools/run-tests $(BUILD):interop
# some targets only: make check-debian13 ONLY=check-all
check-debian13: need-debian13
	tools/check-debian13 build-debian13 $(ONLY)
asan tsan: %: need-check setup-%
	tools/run-tests build-$@:$(SANITIZED)
soak: SOAK_SECONDS = 600
soak: need-check need-check-all need-interop all \
		setup-asan setup-tsan setup-fuzz
	tools/run-tests $(BUILD):soak,long build-fuzz:fuzz \
		build-asan:threads build-tsan:threads
fuzz: need-check-all setup-fuzz
	tools/run-tests build-fuzz:fuzz
bench: need-bench all
	bench/run $(BUILD)
# some of them only: make experiments ONLY=b,h
experiments: need-experiments all
	experiments/run --only "$(ONLY)" $(BUILD)
install: all
	meson install -C $(BUILD)
uninstall:
	ninja -C $(BUILD) uninstall
format: need-check
	clang-format-14 -i $$(find src tests tools bench demo experiments \
		-name '*.[ch]')

need-%:
	@tools/bootstrap $*
$(BUILD)/build.ninja: | need-build
	@meson setup $(BUILD) $(MESON_ARGS)
setup-asan: SETUP = -Db_sanitize=address,undefined -Db_lundef=false
setup-tsan: SETUP = -Db_sanitize=thread -Db_lundef=false
setup-fuzz: SETUP = -Db_sanitize=address,undefined -Db_lundef=false -Dfuzz=true
setup-fuzz: export CC = clang
# tools/run-tests builds what it runs
setup-asan setup-tsan setup-fuzz: setup-%: | need-build
	@test -f build-$*/build.ninja || \
		meson setup build-$* $(SETUP) $(MESON_ARGS)

.PHONY: all demo check check-ci check-all check-interop check-debian13 asan tsan soak fuzz bench \
	experiments install uninstall format setup-asan setup-tsan setup-fuzz
