# `make` builds, `make run` starts a chat, `make test` tests; `make help` lists the rest.
P ?= release
T ?= 60
W ?= build/nugget
PREFIX ?= /usr/local
B := $(if $(filter release,$(P)),build,build/$(P))
BUILD = scripts/deps && { [ -f $(B)/build.ninja ] || cmake --preset $(P); } && ninja -C $(B)
PAIR = $(if $(KING),--king $(KING)) $(if $(DRAFTER),--drafter $(DRAFTER))

.PHONY: all run test bench fuzz arm64 lint coverage nugget install uninstall package portable clean help
all:
	@$(BUILD)
run: ## chat with the small pair that ships with ingot (ARGS=, KING=folder, DRAFTER=folder)
	@{ $(BUILD) ingot; } >&2
	@$(B)/ingot chat $(PAIR) $(ARGS)
test: all ## all tests (P=asan, tsan, debug, clang: in that build)
	ctest --test-dir $(B) --output-on-failure --output-junit junit.xml -j $$(getconf _NPROCESSORS_ONLN)
bench: all ## measure speed (ARGS=, KING=, DRAFTER=)
	$(B)/ingot bench $(PAIR) $(ARGS)
fuzz: ## every fuzz target for T=60 seconds
	@scripts/deps --dev
	scripts/fuzz "" $(T)
arm64: ## cross build for arm64 Linux, tests under qemu
	@scripts/deps
	scripts/arm64-root
	@$(MAKE) P=arm64 test
lint: all ## everything that scripts check
	@scripts/deps --dev
	scripts/format --check
	scripts/check-layers
	scripts/check-symbols $(B)
	scripts/check-sizes $(B)
	scripts/check-docs $(B)/ingot
	scripts/lint $(B)
coverage: ## lines that the tests run, by module, and what none of them runs
	@scripts/deps --dev
	scripts/coverage
nugget: all ## train the shipped pair anew: hours; checkpoints and packs in W=build/nugget (train/README.md)
	train/make-nugget $(W) $(ARGS)
install: ## into PREFIX=/usr/local (and DESTDIR)
	@$(BUILD) installed
	@DESTDIR="$(DESTDIR)" scripts/install $(B) "$(PREFIX)"
uninstall: ## remove what `make install` from this folder put there
	@DESTDIR="$(DESTDIR)" scripts/install --remove $(B)
package: ## a .deb (and with P=static a .tar.gz that runs on any Linux of this age) in the build folder
	@scripts/deps --package
	@$(BUILD) installed
	cd $(B) && cpack -G $(if $(filter static,$(P)),TGZ,DEB)
portable: ## the .tar.gz: every library but libc linked in
	@scripts/deps --package
	scripts/static-curl build/static-curl
	@PKG_CONFIG_PATH=$(CURDIR)/build/static-curl/lib/pkgconfig cmake --preset static
	@$(MAKE) package P=static
clean: ## remove all build folders
	rm -rf build
help:
	@echo "make             build the program: $(B)/ingot"
	@sed -n 's/^\([a-z0-9]*\):.*## \(.*\)/make \1@\2/p' Makefile | awk -F@ '{ printf "%-16s %s\n", $$1, $$2 }'
