/* libnvidia-ml.so.1 without a GPU: answers from the state file whose format console/demo/gpustate.py documents.
 *
 * Beside that, "mig GPU.INSTANCE uuid=... total=... procs=..." is an instance of a divided GPU, with the fields of a GPU.
 * The file is FAKE_NVML_STATE, else /run/fake-nvml/state; it is read anew by every call, so that an answer is never
 * older than the file. No file: the driver is not loaded. A GPU whose line went away is lost. Struct layouts follow
 * nvml.h, as pynvml declares them. Needs libc only and Linux's /proc.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

enum {
    SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9, TIMEOUT = 10, GPU_IS_LOST = 15, ARGUMENT_VERSION_MISMATCH = 25, UNKNOWN_ERROR = 999
};
enum { MAX_GPUS = 32, MAX_PROCS = 32, MAX_MIGS = 7, IDLE_POWER_MW = 77000, IDLE_SM_MHZ = 345 };
enum { CLOCK_GRAPHICS = 0, CLOCK_SM = 1, CLOCK_MEM = 2, CLOCK_VIDEO = 3 };
enum { REASON_IDLE = 1 };

typedef unsigned long long u64;
typedef int ret_t;
typedef struct device { unsigned index; int instance; /* -1: a whole GPU */ } *device_t;

typedef struct { char busIdLegacy[16]; unsigned domain, bus, device, pciDeviceId, pciSubSystemId; char busId[32]; } pci_t;
typedef struct { u64 total, free, used; } memory_t;
typedef struct { unsigned version; u64 total, reserved, free, used; } memory_v2_t;
typedef struct { unsigned gpu, memory; } utilization_t;
typedef struct { unsigned pid; u64 used; unsigned gpuInstance, computeInstance; } process_t; /* _v2 and _v3 */
typedef struct { unsigned pid; u64 used; } process_v1_t;
typedef struct { unsigned version; unsigned sensor; int temperature; } temperature_v1_t;
typedef struct { unsigned pid; u64 time_us; unsigned sm, memory, encoder, decoder; } process_use_t;
typedef struct { device_t device; u64 type, data; unsigned gpuInstance, computeInstance; } event_t;
typedef struct event_set { u64 gpus; } *event_set_t;

_Static_assert(sizeof(pci_t) == 68 && sizeof(memory_t) == 24 && sizeof(memory_v2_t) == 40, "layout of nvml.h");
_Static_assert(sizeof(process_t) == 24 && sizeof(process_v1_t) == 16 && sizeof(temperature_v1_t) == 12, "layout of nvml.h");
_Static_assert(sizeof(process_use_t) == 32, "layout of nvml.h");
_Static_assert(sizeof(event_t) == 32, "layout of nvml.h");

typedef struct { unsigned pid; u64 used; int used_known; } holder_t;
typedef struct {
    int present;
    char uuid[96], name[96];
    /* -1: not available */
    long long total, used, util, memutil, power_mw, limit_mw, temp, sm_mhz, mem_mhz, throttle, ecc_uncorrected;
    long long reserved, sm_max_mhz, hot_at, retired, remapped, pending, xid;
    double held_until;
    int procs, dead, living;
    holder_t holders[MAX_PROCS];
} gpu_t;
typedef struct { char driver[80]; gpu_t gpus[MAX_GPUS]; gpu_t migs[MAX_GPUS][MAX_MIGS]; unsigned count; } state_t;

static struct device devices[MAX_GPUS], instances[MAX_GPUS][MAX_MIGS];
static long long told_xids[MAX_GPUS];
static int users;
static __thread state_t state; /* of the call that runs in this thread */

/* ---------------------------------------------------------------------------------------------------- state file */

static const char *state_path(void)
{
    const char *path = getenv("FAKE_NVML_STATE");
    return path && *path ? path : "/run/fake-nvml/state";
}

static int is_alive(unsigned pid, u64 start)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    size_t got = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[got] = 0;
    char *after = strrchr(text, ')'); /* the name may hold blanks and parentheses */
    if (!after || after[2] == 'Z' || after[2] == 'X')
        return 0;
    char *field = after + 2;
    for (int skip = 3; skip < 22 && field; skip++)
        field = strchr(field + 1, ' ');
    return !start || (field && strtoull(field, NULL, 10) == start);
}

/* The value of KEY=VALUE in a line, without quotes; returns 0 where it is absent or "?". */
static int field(const char *line, const char *key, char *out, size_t room)
{
    size_t length = strlen(key);
    int quoted = 0;
    for (const char *at = line; *at; at++) {
        if (*at == '"')
            quoted = !quoted;
        if (quoted || *at != ' ' || strncmp(at + 1, key, length) || at[1 + length] != '=')
            continue;
        at += length + 2;
        char stop = *at == '"' ? '"' : ' ';
        at += stop == '"';
        size_t used = 0;
        while (*at && *at != stop && *at != '\n' && used + 1 < room)
            out[used++] = *at++;
        out[used] = 0;
        return strcmp(out, "?") != 0;
    }
    return 0;
}

static long long number(const char *line, const char *key, long long absent)
{
    char text[64];
    return field(line, key, text, sizeof text) && *text ? strtoll(text, NULL, 0) : absent;
}

static void read_holders(gpu_t *gpu, char *text)
{
    u64 dead_bytes = 0;
    char *save = NULL;
    for (char *entry = strtok_r(text, ",", &save); entry; entry = strtok_r(NULL, ",", &save)) {
        char *rest;
        unsigned pid = (unsigned)strtoul(entry, &rest, 10);
        holder_t holder = { pid, 0, *rest == ':' && isdigit((unsigned char)rest[1]) };
        if (*rest == ':')
            holder.used = strtoull(rest + 1, &rest, 10);
        while (*rest && *rest != ':')
            rest++; /* a "?" */
        u64 start = *rest == ':' ? strtoull(rest + 1, NULL, 10) : 0;
        /* "PID:BYTES:!": a pid of another namespace, as older drivers state them: not ours to look up. */
        int is_stated = *rest == ':' && rest[1] == '!';
        if (!is_stated && !is_alive(pid, start)) {
            gpu->dead++;
            dead_bytes += holder.used;
        } else if (gpu->living < MAX_PROCS) {
            gpu->holders[gpu->living++] = holder;
        }
    }
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (gpu->used >= 0 && (double)now.tv_sec + (double)now.tv_nsec / 1e9 >= gpu->held_until)
        gpu->used = (u64)gpu->used > dead_bytes ? gpu->used - (long long)dead_bytes : 0;
}

static void rest_at_most(long long *value, long long most)
{
    if (*value > most)
        *value = most;
}

/* A GPU, or with "mig GPU.INSTANCE" a part of one: the same fields, of which a part has fewer. */
static void read_gpu(const char *line)
{
    static __thread char procs[8192];
    char held[64] = "0", *rest;
    int is_mig = !strncmp(line, "mig ", 4);
    unsigned index = (unsigned)strtoul(line + 4, &rest, 10), part = *rest == '.' ? (unsigned)strtoul(rest + 1, NULL, 10) : 0;
    if (index >= MAX_GPUS || part >= MAX_MIGS)
        return;
    gpu_t *gpu = is_mig ? &state.migs[index][part] : &state.gpus[index];
    memset(gpu, 0, sizeof *gpu);
    gpu->present = 1;
    field(line, "uuid", gpu->uuid, sizeof gpu->uuid);
    field(line, "name", gpu->name, sizeof gpu->name);
    gpu->total = number(line, "total", -1);
    gpu->used = number(line, "used", -1);
    gpu->util = number(line, "util", -1);
    gpu->memutil = number(line, "memutil", -1);
    gpu->power_mw = number(line, "power_mw", -1);
    gpu->limit_mw = number(line, "limit_mw", -1);
    gpu->temp = number(line, "temp", -1);
    gpu->sm_mhz = number(line, "sm_mhz", -1);
    gpu->mem_mhz = number(line, "mem_mhz", -1);
    gpu->throttle = number(line, "throttle", -1);
    gpu->ecc_uncorrected = number(line, "ecc_uncorrected", 0);
    gpu->reserved = number(line, "reserved", 0);
    gpu->sm_max_mhz = number(line, "sm_max_mhz", 1980);
    gpu->hot_at = number(line, "hot_at", 87);
    gpu->retired = number(line, "retired", -1);
    gpu->remapped = number(line, "remapped", -1);
    gpu->pending = number(line, "pending", 0);
    gpu->xid = number(line, "xid", 0);
    field(line, "held_until", held, sizeof held);
    gpu->held_until = strtod(held, NULL);
    if (field(line, "procs", procs, sizeof procs))
        read_holders(gpu, procs);
    if (gpu->dead && !gpu->living) {
        rest_at_most(&gpu->util, 0);
        rest_at_most(&gpu->memutil, 0);
        rest_at_most(&gpu->power_mw, IDLE_POWER_MW);
        rest_at_most(&gpu->sm_mhz, IDLE_SM_MHZ);
    }
    if (!is_mig && index >= state.count)
        state.count = index + 1;
}

static int mig_count(unsigned index)
{
    int found = 0;
    for (unsigned part = 0; part < MAX_MIGS; part++)
        found += state.migs[index][part].present;
    return found;
}

/* "fail CALL=CODE [gpu=I]" and "hang CALL [gpu=I]" for this call: the code, or no return at all. */
static ret_t injected(const char *line, const char *call, int gpu)
{
    int fail = !strncmp(line, "fail ", 5), hang = !strncmp(line, "hang ", 5);
    size_t length = strlen(call);
    if ((!fail && !hang) || strncmp(line + 5, call, length) || (!isspace((unsigned char)line[5 + length]) && line[5 + length] != '=' && line[5 + length]))
        return SUCCESS;
    long long only = number(line + 5, "gpu", -1);
    if (only >= 0 && only != gpu)
        return SUCCESS;
    while (hang)
        pause();
    return (ret_t)number(line + 4, call, UNKNOWN_ERROR);
}

/* Whether what was read last may still be told: measurements set FAKE_NVML_KEEP_MS, since reading costs more than asking
 * a real driver does. */
static int is_fresh(void)
{
    static __thread long long read_ms;
    const char *keep = getenv("FAKE_NVML_KEEP_MS");
    struct timespec now;
    if (!keep)
        return 0;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long long now_ms = now.tv_sec * 1000LL + now.tv_nsec / 1000000;
    if (state.count && now_ms - read_ms < strtoll(keep, NULL, 10))
        return 1;
    read_ms = now_ms;
    return 0;
}

static ret_t load(const char *call, int gpu)
{
    static __thread char line[16384];
    if (is_fresh())
        return SUCCESS;
    memset(&state, 0, sizeof state);
    FILE *file = fopen(state_path(), "re");
    if (!file)
        return users ? UNKNOWN_ERROR : DRIVER_NOT_LOADED;
    ret_t failure = SUCCESS;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        if (!strncmp(line, "driver ", 7))
            snprintf(state.driver, sizeof state.driver, "%.79s", line + 7);
        else if (!strncmp(line, "gpu ", 4) || !strncmp(line, "mig ", 4))
            read_gpu(line);
        else if (failure == SUCCESS)
            failure = injected(line, call, gpu);
    }
    fclose(file);
    return failure;
}

static ret_t load_system(const char *call)
{
    return users ? load(call, -1) : UNINITIALIZED;
}

static int is_whole(device_t handle) { return handle >= devices && handle < devices + MAX_GPUS; }

static int is_part(device_t handle)
{
    return handle >= &instances[0][0] && handle < &instances[0][0] + MAX_GPUS * MAX_MIGS;
}

static ret_t load_gpu(const char *call, device_t handle, gpu_t **gpu)
{
    if (!users)
        return UNINITIALIZED;
    if (!is_whole(handle) && !is_part(handle))
        return INVALID_ARGUMENT;
    ret_t result = load(call, (int)handle->index);
    if (result != SUCCESS)
        return result;
    *gpu = is_whole(handle) ? &state.gpus[handle->index] : &state.migs[handle->index][handle->instance];
    return (*gpu)->present ? SUCCESS : GPU_IS_LOST;
}

#define SYSTEM_CALL                                                                                                   \
    ret_t result = load_system(__func__);                                                                             \
    if (result != SUCCESS)                                                                                            \
        return result

#define GPU_CALL(handle)                                                                                              \
    gpu_t *gpu = NULL;                                                                                                \
    ret_t result = load_gpu(__func__, handle, &gpu);                                                                  \
    if (result != SUCCESS)                                                                                            \
        return result

static ret_t put_text(const char *text, char *out, unsigned room)
{
    if (!out)
        return INVALID_ARGUMENT;
    if (strlen(text) + 1 > room)
        return INSUFFICIENT_SIZE;
    strcpy(out, text);
    return SUCCESS;
}

static ret_t put(long long value, unsigned *out)
{
    if (!out)
        return INVALID_ARGUMENT;
    if (value < 0)
        return NOT_SUPPORTED;
    *out = (unsigned)value;
    return SUCCESS;
}

/* -------------------------------------------------------------------------------------------------------- system */

static ret_t start(const char *call)
{
    ret_t result = load(call, -1);
    if (result != SUCCESS)
        return result;
    for (unsigned index = 0; index < MAX_GPUS; index++) {
        devices[index] = (struct device){ index, -1 };
        for (int part = 0; part < MAX_MIGS; part++)
            instances[index][part] = (struct device){ index, part };
    }
    users++;
    return SUCCESS;
}

API ret_t nvmlInitWithFlags(unsigned flags) { (void)flags; return start(__func__); }
API ret_t nvmlInit_v2(void) { return start(__func__); }
API ret_t nvmlInit(void) { return start(__func__); }

API ret_t nvmlShutdown(void)
{
    ret_t result = users ? load(__func__, -1) : UNINITIALIZED;
    if (users && (result == SUCCESS || access(state_path(), R_OK))) { /* a driver that went away ends as well */
        users--;
        result = SUCCESS;
    }
    return result;
}

API const char *nvmlErrorString(ret_t code)
{
    switch (code) {
    case SUCCESS: return "The operation was successful";
    case UNINITIALIZED: return "Uninitialized";
    case INVALID_ARGUMENT: return "Invalid Argument";
    case NOT_SUPPORTED: return "Not Supported";
    case 4: return "Insufficient Permissions";
    case NOT_FOUND: return "Not Found";
    case INSUFFICIENT_SIZE: return "Insufficient Size";
    case DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case TIMEOUT: return "Timeout";
    case GPU_IS_LOST: return "GPU is lost";
    case 16: return "GPU requires reset";
    case 18: return "Driver/library version mismatch";
    case ARGUMENT_VERSION_MISMATCH: return "Argument version mismatch";
    default: return "Unknown Error";
    }
}

API ret_t nvmlSystemGetDriverVersion(char *out, unsigned room)
{
    SYSTEM_CALL;
    return *state.driver ? put_text(state.driver, out, room) : NOT_SUPPORTED;
}

API ret_t nvmlSystemGetNVMLVersion(char *out, unsigned room)
{
    static __thread char version[96];
    SYSTEM_CALL;
    snprintf(version, sizeof version, "12.%s", state.driver);
    return put_text(version, out, room);
}

API ret_t nvmlSystemGetCudaDriverVersion(int *out) { SYSTEM_CALL; *out = 12040; return SUCCESS; }
API ret_t nvmlSystemGetCudaDriverVersion_v2(int *out) { SYSTEM_CALL; *out = 12040; return SUCCESS; }

API ret_t nvmlSystemGetProcessName(unsigned pid, char *out, unsigned room)
{
    SYSTEM_CALL;
    char path[64], name[1024];
    snprintf(path, sizeof path, "/proc/%u/exe", pid);
    ssize_t got = readlink(path, name, sizeof name - 1);
    if (got < 0)
        return NOT_FOUND;
    name[got] = 0;
    return put_text(name, out, room);
}

API ret_t nvmlDeviceGetCount_v2(unsigned *out) { SYSTEM_CALL; return put(state.count, out); }
API ret_t nvmlDeviceGetCount(unsigned *out) { SYSTEM_CALL; return put(state.count, out); }

API ret_t nvmlDeviceGetHandleByIndex_v2(unsigned index, device_t *out)
{
    if (!users)
        return UNINITIALIZED;
    ret_t result = load(__func__, (int)index);
    if (result != SUCCESS)
        return result;
    if (!out || index >= state.count)
        return INVALID_ARGUMENT;
    if (!state.gpus[index].present)
        return GPU_IS_LOST;
    *out = &devices[index];
    return SUCCESS;
}

API ret_t nvmlDeviceGetHandleByIndex(unsigned index, device_t *out) { return nvmlDeviceGetHandleByIndex_v2(index, out); }

API ret_t nvmlDeviceGetHandleByUUID(const char *uuid, device_t *out)
{
    SYSTEM_CALL;
    for (unsigned index = 0; uuid && out && index < state.count; index++)
        if (state.gpus[index].present && !strcmp(state.gpus[index].uuid, uuid)) {
            *out = &devices[index];
            return SUCCESS;
        }
    return uuid && out ? NOT_FOUND : INVALID_ARGUMENT;
}

API ret_t nvmlDeviceGetHandleByPciBusId_v2(const char *id, device_t *out)
{
    SYSTEM_CALL;
    unsigned domain, bus;
    if (!id || !out || sscanf(id, "%x:%x:", &domain, &bus) != 2)
        return INVALID_ARGUMENT;
    if (!bus || bus % 16 || bus / 16 > state.count || !state.gpus[bus / 16 - 1].present)
        return NOT_FOUND;
    *out = &devices[bus / 16 - 1];
    return SUCCESS;
}

/* --------------------------------------------------------------------------------------------------- one device */

API ret_t nvmlDeviceGetIndex(device_t d, unsigned *out) { GPU_CALL(d); return put(d->index, out); }
API ret_t nvmlDeviceGetMinorNumber(device_t d, unsigned *out) { GPU_CALL(d); return put(d->index, out); }
API ret_t nvmlDeviceGetUUID(device_t d, char *out, unsigned room) { GPU_CALL(d); return put_text(gpu->uuid, out, room); }
API ret_t nvmlDeviceGetName(device_t d, char *out, unsigned room) { GPU_CALL(d); return put_text(gpu->name, out, room); }

API ret_t nvmlDeviceGetMemoryInfo(device_t d, memory_t *out)
{
    GPU_CALL(d);
    if (gpu->total < 0 || gpu->used < 0)
        return NOT_SUPPORTED;
    *out = (memory_t){ (u64)gpu->total, (u64)(gpu->total - gpu->used), (u64)gpu->used };
    return SUCCESS;
}

API ret_t nvmlDeviceGetMemoryInfo_v2(device_t d, memory_v2_t *out)
{
    GPU_CALL(d);
    if (out->version != (sizeof *out | 2u << 24))
        return ARGUMENT_VERSION_MISMATCH;
    if (gpu->total < 0 || gpu->used < 0)
        return NOT_SUPPORTED;
    u64 taken = (u64)(gpu->used + gpu->reserved);
    *out = (memory_v2_t){ out->version, (u64)gpu->total, (u64)gpu->reserved, (u64)gpu->total - taken, (u64)gpu->used };
    return SUCCESS;
}

API ret_t nvmlDeviceGetUtilizationRates(device_t d, utilization_t *out)
{
    GPU_CALL(d);
    if (gpu->util < 0)
        return NOT_SUPPORTED;
    *out = (utilization_t){ (unsigned)gpu->util, gpu->memutil < 0 ? 0 : (unsigned)gpu->memutil };
    return SUCCESS;
}

API ret_t nvmlDeviceGetPowerUsage(device_t d, unsigned *out) { GPU_CALL(d); return put(gpu->power_mw, out); }
API ret_t nvmlDeviceGetEnforcedPowerLimit(device_t d, unsigned *out) { GPU_CALL(d); return put(gpu->limit_mw, out); }
API ret_t nvmlDeviceGetPowerManagementLimit(device_t d, unsigned *out) { GPU_CALL(d); return put(gpu->limit_mw, out); }
API ret_t nvmlDeviceGetPowerManagementDefaultLimit(device_t d, unsigned *out) { GPU_CALL(d); return put(gpu->limit_mw, out); }

API ret_t nvmlDeviceGetTemperature(device_t d, unsigned sensor, unsigned *out)
{
    GPU_CALL(d);
    return sensor ? INVALID_ARGUMENT : put(gpu->temp, out);
}

API ret_t nvmlDeviceGetTemperatureV(device_t d, temperature_v1_t *out)
{
    GPU_CALL(d);
    if (out->version != (sizeof *out | 1u << 24))
        return ARGUMENT_VERSION_MISMATCH;
    if (out->sensor)
        return INVALID_ARGUMENT;
    if (gpu->temp < 0)
        return NOT_SUPPORTED;
    out->temperature = (int)gpu->temp;
    return SUCCESS;
}

API ret_t nvmlDeviceGetTemperatureThreshold(device_t d, unsigned kind, unsigned *out)
{
    GPU_CALL(d);
    return kind == 0 ? put(gpu->hot_at + 5, out) : kind == 1 ? put(gpu->hot_at, out) : NOT_SUPPORTED; /* shutdown, slowdown */
}

API ret_t nvmlDeviceGetClockInfo(device_t d, unsigned kind, unsigned *out)
{
    GPU_CALL(d);
    if (kind > CLOCK_VIDEO)
        return INVALID_ARGUMENT;
    return put(kind == CLOCK_MEM ? gpu->mem_mhz : gpu->sm_mhz, out);
}

API ret_t nvmlDeviceGetMaxClockInfo(device_t d, unsigned kind, unsigned *out)
{
    GPU_CALL(d);
    if (kind > CLOCK_VIDEO)
        return INVALID_ARGUMENT;
    return put(kind == CLOCK_MEM ? 2619 : gpu->sm_max_mhz, out);
}

static ret_t put_reasons(const gpu_t *gpu, u64 *out)
{
    if (!out)
        return INVALID_ARGUMENT;
    *out = gpu->throttle >= 0 ? (u64)gpu->throttle : gpu->util > 0 ? 0 : REASON_IDLE;
    return SUCCESS;
}

API ret_t nvmlDeviceGetCurrentClocksEventReasons(device_t d, u64 *out) { GPU_CALL(d); return put_reasons(gpu, out); }
API ret_t nvmlDeviceGetCurrentClocksThrottleReasons(device_t d, u64 *out) { GPU_CALL(d); return put_reasons(gpu, out); }

API ret_t nvmlDeviceGetPciInfo_v3(device_t d, pci_t *out)
{
    GPU_CALL(d);
    unsigned bus = (d->index + 1) * 16;
    memset(out, 0, sizeof *out);
    out->bus = bus;
    out->pciDeviceId = 0x233510de;
    snprintf(out->busIdLegacy, sizeof out->busIdLegacy, "0000:%02X:00.0", bus);
    snprintf(out->busId, sizeof out->busId, "00000000:%02X:00.0", bus);
    return SUCCESS;
}

API ret_t nvmlDeviceGetTotalEccErrors(device_t d, unsigned type, unsigned counter, u64 *out)
{
    GPU_CALL(d);
    if (type > 1 || counter > 1)
        return INVALID_ARGUMENT;
    *out = type == 1 ? (u64)gpu->ecc_uncorrected : 0;
    return SUCCESS;
}

API ret_t nvmlDeviceGetEccMode(device_t d, unsigned *now, unsigned *later) { GPU_CALL(d); *now = *later = 1; return SUCCESS; }
API ret_t nvmlDeviceGetPersistenceMode(device_t d, unsigned *out) { GPU_CALL(d); return put(1, out); }
API ret_t nvmlDeviceGetDisplayActive(device_t d, unsigned *out) { GPU_CALL(d); return put(0, out); }
API ret_t nvmlDeviceGetDisplayMode(device_t d, unsigned *out) { GPU_CALL(d); return put(0, out); }
API ret_t nvmlDeviceGetComputeMode(device_t d, unsigned *out) { GPU_CALL(d); return put(0, out); }
API ret_t nvmlDeviceGetPerformanceState(device_t d, unsigned *out) { GPU_CALL(d); return put(gpu->util > 0 ? 0 : 8, out); }
API ret_t nvmlDeviceGetPowerState(device_t d, unsigned *out) { GPU_CALL(d); return put(gpu->util > 0 ? 0 : 8, out); }

API ret_t nvmlDeviceGetCudaComputeCapability(device_t d, int *major, int *minor)
{
    GPU_CALL(d);
    *major = 9, *minor = 0;
    return SUCCESS;
}

/* ------------------------------------------------------------------------------------------- parts of a GPU (MIG) */

API ret_t nvmlDeviceGetMigMode(device_t d, unsigned *now, unsigned *later)
{
    GPU_CALL(d);
    if (!mig_count(d->index))
        return NOT_SUPPORTED;
    *now = *later = 1;
    return SUCCESS;
}

API ret_t nvmlDeviceGetMaxMigDeviceCount(device_t d, unsigned *out) { GPU_CALL(d); return put(mig_count(d->index) ? MAX_MIGS : 0, out); }
API ret_t nvmlDeviceIsMigDeviceHandle(device_t d, unsigned *out) { GPU_CALL(d); return put(is_part(d), out); }
API ret_t nvmlDeviceGetGpuInstanceId(device_t d, unsigned *out) { GPU_CALL(d); return is_part(d) ? put(d->instance + 1, out) : NOT_SUPPORTED; }
API ret_t nvmlDeviceGetComputeInstanceId(device_t d, unsigned *out) { GPU_CALL(d); return is_part(d) ? put(0, out) : NOT_SUPPORTED; }

API ret_t nvmlDeviceGetMigDeviceHandleByIndex(device_t d, unsigned part, device_t *out)
{
    GPU_CALL(d);
    if (!out || part >= MAX_MIGS)
        return INVALID_ARGUMENT;
    if (!state.migs[d->index][part].present)
        return NOT_FOUND;
    *out = &instances[d->index][part];
    return SUCCESS;
}

API ret_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device_t d, device_t *out)
{
    GPU_CALL(d);
    if (!out || !is_part(d))
        return INVALID_ARGUMENT;
    *out = &devices[d->index];
    return SUCCESS;
}

/* ---------------------------------------------------------------------------------------------------- broken memory */

API ret_t nvmlDeviceGetRemappedRows(device_t d, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failed)
{
    GPU_CALL(d);
    if (gpu->remapped < 0)
        return NOT_SUPPORTED;
    *corrected = 0, *uncorrected = (unsigned)gpu->remapped, *pending = (unsigned)gpu->pending, *failed = 0;
    return SUCCESS;
}

API ret_t nvmlDeviceGetRetiredPages(device_t d, unsigned cause, unsigned *count, u64 *out)
{
    GPU_CALL(d);
    if (!count || cause > 1)
        return INVALID_ARGUMENT;
    if (gpu->retired < 0)
        return NOT_SUPPORTED;
    unsigned found = cause == 1 ? (unsigned)gpu->retired : 0, room = out ? *count : 0;
    *count = found;
    if (found > room)
        return INSUFFICIENT_SIZE;
    for (unsigned page = 0; page < found; page++)
        out[page] = 0x1000ull * (page + 1);
    return SUCCESS;
}

API ret_t nvmlDeviceGetRetiredPagesPendingStatus(device_t d, unsigned *out)
{
    GPU_CALL(d);
    return gpu->retired < 0 ? NOT_SUPPORTED : put(gpu->pending, out);
}

/* ------------------------------------------------------------------------------------------------------------- Xids */

enum { EVENT_XID = 8, MOST_SETS = 16 };
static struct event_set sets[MOST_SETS];
static unsigned sets_made;

API ret_t nvmlEventSetCreate(event_set_t *out)
{
    SYSTEM_CALL;
    if (!out || sets_made == MOST_SETS)
        return INVALID_ARGUMENT;
    *out = &sets[sets_made++];
    (*out)->gpus = 0;
    return SUCCESS;
}

API ret_t nvmlEventSetFree(event_set_t set) { SYSTEM_CALL; return set ? SUCCESS : INVALID_ARGUMENT; }

API ret_t nvmlDeviceGetSupportedEventTypes(device_t d, u64 *out)
{
    GPU_CALL(d);
    *out = EVENT_XID;
    return SUCCESS;
}

API ret_t nvmlDeviceRegisterEvents(device_t d, u64 types, event_set_t set)
{
    GPU_CALL(d);
    if (!set || types & ~(u64)EVENT_XID)
        return INVALID_ARGUMENT;
    set->gpus |= 1ull << d->index;
    return SUCCESS;
}

/* Each Xid that the file states is told once, as the driver does; what stood there before anybody listened, too. */
API ret_t nvmlEventSetWait_v2(event_set_t set, event_t *out, unsigned timeout_ms)
{
    SYSTEM_CALL;
    (void)timeout_ms;
    for (unsigned index = 0; set && out && index < MAX_GPUS; index++) {
        long long xid = state.gpus[index].xid;
        if (!(set->gpus & 1ull << index) || !xid || xid == told_xids[index])
            continue;
        told_xids[index] = xid;
        *out = (event_t){ &devices[index], EVENT_XID, (u64)xid, ~0u, ~0u };
        return SUCCESS;
    }
    return set && out ? TIMEOUT : INVALID_ARGUMENT;
}

API ret_t nvmlEventSetWait(event_set_t set, event_t *out, unsigned timeout_ms) { return nvmlEventSetWait_v2(set, out, timeout_ms); }

/* ------------------------------------------------------------------------------------------------------ the rest */

API ret_t nvmlDeviceGetFanSpeed(device_t d, unsigned *out) { GPU_CALL(d); (void)out; return NOT_SUPPORTED; }

API ret_t nvmlDeviceGetEncoderUtilization(device_t d, unsigned *out, unsigned *period_us)
{
    GPU_CALL(d);
    *out = *period_us = 0;
    return SUCCESS;
}

API ret_t nvmlDeviceGetDecoderUtilization(device_t d, unsigned *out, unsigned *period_us)
{
    GPU_CALL(d);
    *out = *period_us = 0;
    return SUCCESS;
}

API ret_t nvmlDeviceGetPcieThroughput(device_t d, unsigned counter, unsigned *kb_per_s)
{
    GPU_CALL(d);
    return counter > 1 ? INVALID_ARGUMENT : put(0, kb_per_s);
}

/* Which of two Windows driver models is in use: on Linux there is none. */
API ret_t nvmlDeviceGetDriverModel_v2(device_t d, unsigned *now, unsigned *next)
{
    GPU_CALL(d);
    (void)now, (void)next;
    return NOT_SUPPORTED;
}

API ret_t nvmlDeviceGetDriverModel(device_t d, unsigned *now, unsigned *next) { return nvmlDeviceGetDriverModel_v2(d, now, next); }

/* --------------------------------------------------------------------------------------------------- processes */

static ret_t put_processes(const gpu_t *gpu, unsigned *count, process_t *out)
{
    if (!count)
        return INVALID_ARGUMENT;
    unsigned room = out ? *count : 0, found = (unsigned)gpu->living;
    *count = found;
    if (found > room)
        return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < found; i++) {
        const holder_t *holder = &gpu->holders[i];
        out[i] = (process_t){ holder->pid, holder->used_known ? holder->used : ~0ull, ~0u, ~0u };
    }
    return SUCCESS;
}

static ret_t no_processes(unsigned *count)
{
    if (!count)
        return INVALID_ARGUMENT;
    *count = 0;
    return SUCCESS;
}

API ret_t nvmlDeviceGetComputeRunningProcesses_v3(device_t d, unsigned *count, process_t *out)
{
    GPU_CALL(d);
    return put_processes(gpu, count, out);
}

API ret_t nvmlDeviceGetComputeRunningProcesses_v2(device_t d, unsigned *count, process_t *out)
{
    GPU_CALL(d);
    return put_processes(gpu, count, out);
}

API ret_t nvmlDeviceGetComputeRunningProcesses(device_t d, unsigned *count, process_v1_t *out)
{
    GPU_CALL(d);
    process_t full[MAX_PROCS];
    unsigned room = out ? *count : 0;
    *count = room < MAX_PROCS ? room : MAX_PROCS;
    result = put_processes(gpu, count, full);
    for (unsigned i = 0; result == SUCCESS && i < *count; i++)
        out[i] = (process_v1_t){ full[i].pid, full[i].used };
    return result;
}

/* The file knows a GPU's utilization, not whose it is: its processes share it evenly. */
API ret_t nvmlDeviceGetProcessUtilization(device_t d, process_use_t *out, unsigned *count, u64 since_us)
{
    GPU_CALL(d);
    if (!count)
        return INVALID_ARGUMENT;
    unsigned room = out ? *count : 0, found = (unsigned)gpu->living;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    u64 now_us = (u64)now.tv_sec * 1000000 + (u64)now.tv_nsec / 1000;
    *count = found;
    if (!found || now_us <= since_us)
        return NOT_FOUND;
    if (found > room)
        return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < found; i++)
        out[i] = (process_use_t){ gpu->holders[i].pid, now_us, (unsigned)(gpu->util > 0 ? gpu->util : 0) / found,
                                  (unsigned)(gpu->memutil > 0 ? gpu->memutil : 0) / found, 0, 0 };
    return SUCCESS;
}

#define NO_PROCESSES(name)                                                                                            \
    API ret_t name(device_t d, unsigned *count, void *out) { GPU_CALL(d); (void)out; return no_processes(count); }
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3)
