# A little of everything that make does; run under accesses.c by tools/pta-oracle.
FILES := $(wildcard /usr/include/sys/*.h)
all: a.x b.y c.y
	@echo $@ $(words $(FILES)) $(firstword $(sort $(FILES))) $(foreach f,a b,$(call wrap,$f))
wrap = [$(1)]$(if $(1),$(origin wrap))
%.x: ; @echo x $* $(shell echo hi)
b.y c.y: %.y: ; @echo y $(subst b,B,$*) $(dir $@) $(filter %/wait.h,$(FILES))
define line
line $(1)
endef
$(info $(call line,3))
ifeq ($(words a b),2)
$(eval Q := 5)
endif
.PHONY: all
