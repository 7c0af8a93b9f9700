# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Friendly names for what meson, tools/ and tests/ do. `make` builds.

BUILD ?= build
QUICK = unit,sim,static,abi,loop,platform,-slow
SANITIZED = unit,sim,loop,-slow
# for how long each long test runs
export SOAK_SECONDS = 10

all: $(BUILD)/build.ninja
	@ninja --quiet -C $(BUILD)

demo: need-demo all
	demo/run $(BUILD)
check: need-check all
	tools/run-tests $(BUILD):$(QUICK)
check-all: need-check need-check-all need-interop all \
		build-asan build-tsan build-fuzz
	tools/run-tests $(BUILD):slow,host,net,interop,soak,-long \
		build-fuzz:fuzz \
		build-asan:$(SANITIZED) build-tsan:$(SANITIZED)
check-interop: need-check need-interop all
	tools/run-tests $(BUILD):interop
asan tsan: %: need-check build-%
	tools/run-tests build-$@:$(SANITIZED)
soak: SOAK_SECONDS = 600
soak: need-check need-check-all need-interop all \
		build-asan build-tsan build-fuzz
	tools/run-tests $(BUILD):soak,long build-fuzz:fuzz \
		build-asan:threads build-tsan:threads
fuzz: need-check-all build-fuzz
	tools/run-tests build-fuzz:fuzz
bench: need-bench all
	bench/run $(BUILD)
# some of them only: make experiments ONLY=b,h
experiments: need-experiments all
	experiments/run --only "$(ONLY)" $(BUILD)
install: all
	meson install -C $(BUILD)
format: need-check
	clang-format -i $$(find src tests tools bench demo experiments \
		-name '*.[ch]')

need-%:
	@tools/bootstrap $*
$(BUILD)/build.ninja: | need-build
	@meson setup $(BUILD) $(MESON_ARGS)
build-asan: SETUP = -Db_sanitize=address,undefined -Db_lundef=false
build-tsan: SETUP = -Db_sanitize=thread -Db_lundef=false
build-fuzz: SETUP = -Db_sanitize=address,undefined -Db_lundef=false -Dfuzz=true
build-fuzz: export CC = clang
build-fuzz: TARGETS = fuzzers
build-asan build-tsan build-fuzz: build-%: | need-build
	@test -f $@/build.ninja || meson setup $@ $(SETUP) $(MESON_ARGS)
	@ninja --quiet -C $@ $(TARGETS)

.PHONY: all demo check check-all check-interop asan tsan soak fuzz bench \
	experiments install format build-asan build-tsan build-fuzz
